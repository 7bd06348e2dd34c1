"""The log of requests that `--log` prints: one line each, for people."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TextIO

from .journal import Call

LONGEST_VALUE = 80


def log_requests(out: TextIO) -> Callable[[Call, float], None]:
    """Return a listener for the journal: time, protocol, method, milliseconds, arguments, error."""

    def write(call: Call, seconds: float) -> None:
        stamp = time.strftime("%H:%M:%S")
        arguments = " ".join(f"{name}={_short(value)}" for name, value in call.args.items())
        failed = f"  !! {call.error.code}: {call.error.message}" if call.error else ""
        failed += f"  [{call.fault} injected]" if call.fault else ""
        label = f"[{call.label}] " if call.label else ""
        out.write(
            f"{stamp} {call.protocol:4} {label}{call.method:24} {seconds * 1000:7.1f} ms  "
            f"{arguments}{failed}\n"
        )
        out.flush()

    return write


def _short(value: Any) -> str:
    text = str(value).replace("\n", " ")
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
