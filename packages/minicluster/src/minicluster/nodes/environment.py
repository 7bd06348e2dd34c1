"""The environment of a job: the node's, the spec's, the cluster's; nothing of this process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..operations.model import Launch
from .sandbox import Slot

BARE_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True)
class Tools:
    """What every node has: a Python, as a file, and a Java, as its home folder."""

    python: Path | None = None
    java: Path | None = None


def environment_of(launch: Launch, tools: Tools, slot: Slot) -> dict[str, str]:
    """Return all variables of a job. A later source overrides an earlier one."""
    given = {
        name: value.replace("$(SandboxPath)", str(slot.sandbox))
        for name, value in launch.task.environment.items()
    }
    socket = {"YT_JOB_PROXY_SOCKET_PATH": str(slot.socket)} if launch.task.rpc_socket else {}
    return {**_of_node(tools, slot), **given, **socket, **launch.environment}


def _of_node(tools: Tools, slot: Slot) -> dict[str, str]:
    """Return the variables of a bare node. Everything of Spark's is kept on the loopback."""
    first = [tools.python.parent] if tools.python else []
    first += [tools.java / "bin"] if tools.java else []
    return {
        "PATH": os.pathsep.join([*map(str, first), *BARE_PATH]),
        "HOME": str(slot.sandbox),
        "TMPDIR": str(slot.temporary),
        "HOSTNAME": "localhost",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "YT_SPARK_LOCAL_DIRS": str(slot.sandbox / "spark-local"),
        **({"JAVA_HOME": str(tools.java)} if tools.java else {}),
    }
