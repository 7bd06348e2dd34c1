"""A plugin of pytest for SPYT's own end-to-end tests: what they assume of their container.

They are written for a server in Docker: the driver is at the bridge's address, Java in /opt/jdk17.
On a minicluster the nodes' processes are processes of this machine. Before SPYT runs its tests, it
changes the settings of the cluster (`yt_patch.py` there). Two of these changes are left out: the
minicluster takes any token, and it has no setting for descending keys.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib import import_module

import pytest
from yt.wrapper import YtClient

JAVA = "SPYT_TESTS_JAVA"
"""The nodes' Java, for this process and for those that it starts."""
LIMIT = "SPYT_TESTS_LIMIT"
"""The seconds that a test may take. SPYT's own tox.ini allows 90, and some tests 180."""
_ENVIRONMENT = {"YT_NETWORK_PROJECT_ID": "0", "YT_IP_ADDRESS_DEFAULT": "localhost"}
"""Without these two, the master of a Spark cluster takes an address that its workers do not reach.
"""
_GLOBAL_CONF = "//home/spark/conf/global"


def pytest_configure() -> None:
    """Change the settings of the tests before they are imported."""
    utils, common = import_module("utils"), import_module("common.cluster_utils")
    here = {"spark.driver.host": "127.0.0.1"}
    java = {"spark.ytsaurus.java.home": os.environ[JAVA]}
    utils.DRIVER_CLIENT_CONF.update(here)
    utils.SPARK_CONF.update(here | java)
    common.DEFAULT_SPARK_CONF.update(java)
    client = YtClient(proxy=utils.YT_PROXY, token="token")
    import_module("common.cypress").patch_conf(client, "python3", os.environ[JAVA])
    for name, value in _ENVIRONMENT.items():
        client.set(f"{_GLOBAL_CONF}/environment/{name}", value)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Fail a test that takes too long, as pytest-timeout would: a lost job is waited for."""

    limit = int(os.environ[LIMIT])

    def give_up(*_: object) -> None:
        signal.alarm(limit)  # its fixtures may hang as well
        raise TimeoutError(f"not done after {limit} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(limit)
    try:
        return (yield)
    finally:
        signal.alarm(0)
