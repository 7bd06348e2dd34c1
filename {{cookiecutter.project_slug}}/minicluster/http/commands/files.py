"""Reading and writing files."""

from __future__ import annotations

from ..registry import BINARY, Invocation, command


@command("read_file", output=BINARY, heavy=True)
def read_file(call: Invocation) -> bytes:
    return call.cluster.cypress.read_file(
        call.rich(),
        tx=call.tx,
        offset=call.integer("offset", 0) or 0,
        length=call.integer("length"),
    )


@command("write_file", input=BINARY, volatile=True, heavy=True)
def write_file(call: Invocation) -> None:
    call.cluster.cypress.write_file(
        call.rich(), call.input, tx=call.tx, compute_md5=call.flag("compute_md5")
    )
