"""Identifies this process, so that the next one on this machine can tell whether it has ended.

A PID alone is ambiguous: containers of one machine, and machines of one name, have equal PIDs, and
the kernel reuses them. We also record the boot id, the PID namespace and the start time.
"""

import os
from pathlib import Path

_PROC = Path("/proc")
_BEGAN = 19
"""The 22nd field of /proc/PID/stat, counted behind the name: when the process began."""


def this_one() -> str:
    """Name this process for is_dead(); empty where the system has no /proc."""
    pid = os.getpid()
    if not (place := _place()) or not (began := _began(pid)):
        return ""
    return f"{place} {pid} {began}"


def is_dead(name: str) -> bool:
    """Return whether a process was of this machine and has ended; of other machines none is."""
    words = name.split()
    if len(words) < 3 or " ".join(words[:-2]) != _place() or not words[-2].isdigit():
        return False
    number, began = int(words[-2]), words[-1]
    try:
        os.kill(number, 0)  # not /proc: that may hide the processes of others
    except ProcessLookupError:
        return True
    except OSError:
        return False
    now = _began(number)
    return bool(now) and now != began


def _place() -> str:
    """Return the boot of this machine and the namespace of process numbers; empty if unknown."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _began(pid: int) -> str:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[_BEGAN]
