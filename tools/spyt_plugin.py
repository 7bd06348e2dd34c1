"""A plugin of pytest for SPYT's own end-to-end tests: what they assume of their container.

They are written for a server in Docker: the driver is at the bridge's address, Java in /opt/jdk17.
On a minicluster the nodes' processes are processes of this machine.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib import import_module

import pytest
from yt.wrapper import YtClient

#: The nodes' Java, for this process and for those that it starts.
JAVA = "SPYT_TESTS_JAVA"
#: SPYT's own tox.ini allows 90 seconds, and some tests 180.
LIMIT_SECONDS = 240
_JAVA_HOME = "//home/spark/conf/global/default_cluster_java_home"


def pytest_configure() -> None:
    """Change the settings of the tests before they are imported."""
    utils, common = import_module("utils"), import_module("common.cluster_utils")
    here = {"spark.driver.host": "127.0.0.1"}
    java = {"spark.ytsaurus.java.home": os.environ[JAVA]}
    utils.DRIVER_CLIENT_CONF.update(here)
    utils.SPARK_CONF.update(here | java)
    common.DEFAULT_SPARK_CONF.update(java)
    YtClient(proxy=utils.YT_PROXY, token="token").set(_JAVA_HOME, os.environ[JAVA])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Fail a test that takes too long, as pytest-timeout would: a lost job is waited for."""

    def give_up(*_: object) -> None:
        signal.alarm(LIMIT_SECONDS)  # its fixtures may hang as well
        raise TimeoutError(f"not done after {LIMIT_SECONDS} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
