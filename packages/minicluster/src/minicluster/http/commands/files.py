"""Reading and writing files; the cache of uploaded ones."""

from __future__ import annotations

from typing import Any

from ...control.parameters import TUNING, read
from ...cypress import file_cache
from ..registry import BINARY, STRUCTURED, Invocation, WithParameters, command, etag


@command(
    "read_file",
    parameters={
        **read("path offset length etag etag_revision transaction_id"),
        "file_reader": TUNING,
    },
    output=BINARY,
    heavy=True,
)
def read_file(call: Invocation) -> WithParameters:
    """Answer with the content, or with nothing if the client has this very state of the file."""
    data = call.cluster.cypress.read_file(
        call.rich(),
        tx=call.tx,
        offset=call.integer("offset", 0) or 0,
        length=call.integer("length"),
    )
    node = call.cluster.cypress.resolve(call.path(), tx=call.tx)
    state: dict[str, Any] = {"id": node.id, "revision": node.revision}
    known = {str(call.get("etag")), str(call.get("etag_revision"))}
    current = {etag(state), str(node.revision)}
    return WithParameters(b"" if known & current else data, state)


@command(
    "write_file",
    parameters={**read("path compute_md5 transaction_id"), "file_writer": TUNING},
    input=BINARY,
    volatile=True,
    heavy=True,
)
def write_file(call: Invocation) -> None:
    call.cluster.cypress.write_file(
        call.rich(), call.input, tx=call.tx, compute_md5=call.flag("compute_md5")
    )


@command("get_file_from_cache", parameters=read("md5 cache_path transaction_id"), output=STRUCTURED)
def get_file_from_cache(call: Invocation) -> str:
    """Answer with the path, or with an empty text."""
    cypress = call.cluster.cypress
    return file_cache.find(cypress, call.string("md5"), call.path("cache_path"), tx=call.tx)


@command(
    "put_file_to_cache",
    parameters=read("path md5 cache_path preserve_expiration_timeout transaction_id"),
    output=STRUCTURED,
    volatile=True,
)
def put_file_to_cache(call: Invocation) -> str:
    cypress, md5 = call.cluster.cypress, call.string("md5")
    return file_cache.put(
        cypress,
        call.path(),
        md5,
        call.path("cache_path"),
        tx=call.tx,
        preserve_expiration_timeout=call.flag("preserve_expiration_timeout"),
    )
