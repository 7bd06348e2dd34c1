"""What the shell's variables may change here, and what not: each name with its reason.

Three kinds of processes ask: a run on a minicluster of its own, the JVM of a driver on this
machine, and git. What `make` keeps from pip, uv and Python is in the Makefile: it is needed before
there is a Python.
"""

import locale
import os
import re
import socket
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import NamedTuple

OWN_SUBMIT_ARGS = "YTSTREAM_SUBMIT_ARGS"
"""Spark's options in place of PYSPARK_SUBMIT_ARGS: the tests make their JVMs cheaper with it."""


class VariablePattern(NamedTuple):
    """Names of variables, as a pattern, and why nothing here may read them."""

    names: str
    reason: str


CLUSTER = (
    VariablePattern(
        r"YT_\w+",
        "They name the cluster, the token and the client's settings of another piece of work; "
        "such a run knows its cluster, and must never talk to that one.",
    ),
    VariablePattern(
        "RECEIVE_TOKEN_FROM_SSH_SESSION",
        "Another source of a token for ytsaurus-client (yt/wrapper/http_helpers.py).",
    ),
)
"""For what starts a minicluster of its own."""
SPARK = (
    VariablePattern(
        r"PYSPARK_\w+|SPARK_(?!LOCAL_DIRS$)\w+|MASTER",
        "Spark's scripts and launcher read them before any setting of a session: another "
        "Spark, master, port or driver's Python. SPARK_LOCAL_DIRS alone says something about "
        "this machine: where there is room.",
    ),
    VariablePattern(r"SPYT_\w+", "spark-env.sh of SPYT takes its class path and folder from them."),
    VariablePattern(
        r"(HADOOP|YARN)_\w+",
        "Their folder of settings goes into the class path: its fs.defaultFS would be where "
        "the checkpoint goes.",
    ),
    VariablePattern(r"BASH_ENV", "Spark's start scripts are bash, which runs that file first."),
)
"""For a JVM that runs Spark on this machine."""
GIT = (
    VariablePattern(
        r"GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|PREFIX|NAMESPACE|OBJECT_DIRECTORY"
        r"|ALTERNATE_OBJECT_DIRECTORIES)",
        "They win over the folder that git is called in.",
    ),
)
"""For a git command that names its repository: git sets these for its hooks."""


def kept(shell: Mapping[str, str], *tables: tuple[VariablePattern, ...]) -> dict[str, str]:
    """Return the variables of ``shell`` without those that the tables drop."""
    names = re.compile("|".join(f"(?:{dropped.names})" for table in tables for dropped in table))
    return {name: value for name, value in shell.items() if not names.fullmatch(name)}


def drop(environment: MutableMapping[str, str], *tables: tuple[VariablePattern, ...]) -> None:
    """Remove from ``environment`` what the tables drop."""
    for name in environment.keys() - kept(environment, *tables).keys():
        del environment[name]


@contextmanager
def replaced(environment: Mapping[str, str]) -> Iterator[None]:
    """Let this process have that environment, and its own one again afterwards."""
    own = dict(os.environ)
    try:
        _set(environment)
        yield
    finally:
        _set(own)


def _set(environment: Mapping[str, str]) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)


def leave_clusters(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let this process and its children see no cluster but the minicluster that they start."""
    drop(environment, CLUSTER)


def reach_this_machine(environment: MutableMapping[str, str] = os.environ) -> None:
    """Exempt the addresses of this machine from HTTP_PROXY and its like.

    ytsaurus-client reads them (requests, `trust_env`). Java's clients read none of them, and Java
    exempts the loopback from its own http.proxyHost (java.net, "Networking Properties").
    """
    for name in ("no_proxy", "NO_PROXY"):  # requests takes the first that is set
        given = environment.get(name) or environment.get(name.swapcase(), "")
        listed = [part.strip() for part in given.split(",") if part.strip()]
        here = ("127.0.0.1", "localhost", "::1", "[::1]", socket.gethostname())
        # urllib takes a star for every address only where it is the whole text (proxy_bypass).
        environment[name] = "*" if "*" in listed else ",".join(dict.fromkeys([*listed, *here]))


def prepare_spark(
    environment: MutableMapping[str, str], ours: Mapping[str, str], submit_args: str
) -> None:
    """Make ``environment`` that of a Spark on this machine: ``ours`` in place of the shell's."""
    drop(environment, SPARK)
    environment.update(ours)
    # Otherwise Java asks for the address of the machine's name, which not every network knows.
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    environment["PYSPARK_SUBMIT_ARGS"] = environment.get(OWN_SUBMIT_ARGS) or submit_args
    # Java reads "?" for the letters of a path that the locale lacks (sun.jnu.encoding).
    name = next(filter(None, map(environment.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "C")
    if not _is_utf8(name):
        environment["LC_ALL"] = "C.UTF-8"


def _is_utf8(name: str) -> bool:
    """Return whether the system has this locale, and in UTF-8.

    ssh passes names on that the other machine may lack. Programs are in the locale C then.
    """
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, name)
        return locale.nl_langinfo(locale.CODESET) == "UTF-8"
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
