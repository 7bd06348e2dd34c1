"""Files, which hold checkpoints: read and written as streams; the cache of uploaded ones."""

from __future__ import annotations

from typing import Any

from ...control.parameters import TUNING, read
from ...cypress import file_cache
from ..messages import set_guid, text
from ..protos import api
from ..service import Invocation, method

BLOCK = 1 << 20
"""Bytes an attachment of ReadFile holds at most, so that a window of the client's fills evenly."""


@method("ReadFile", parameters={**read("path offset length"), "config": TUNING})
async def read_file(call: Invocation) -> None:
    """Send meta, data and a null attachment, then respond; the client's side is over."""
    message = call.message
    target = text(message.path)
    data = call.cluster.cypress.read_file(
        target,
        tx=call.transaction,
        offset=message.offset,
        length=message.length if message.HasField("length") else None,
    )
    node = call.cluster.cypress.resolve(target, tx=call.transaction)
    meta: Any = api("TReadFileMeta")(revision=node.revision)
    set_guid(meta.id, node.id)
    await call.stream.write(meta.SerializeToString())
    for start in range(0, len(data), BLOCK):
        await call.stream.write(data[start : start + BLOCK])
    await call.stream.finish()


@method("WriteFile", parameters={**read("path compute_md5"), "config": TUNING})
async def write_file(call: Invocation) -> None:
    """Start the client with a null attachment; apply nothing before the client's own null."""
    message = call.message
    call.stream.end()
    data = b"".join([chunk async for chunk in call.stream.chunks()])
    call.cluster.cypress.write_file(
        text(message.path), data, tx=call.transaction, compute_md5=message.compute_md5
    )


@method("GetFileFromCache", parameters=read("md5 cache_path"))
def get_file_from_cache(call: Invocation) -> None:
    """Answer with the path, or with an empty one: the client requires the field."""
    message = call.message
    cache = text(message.cache_path)
    found = file_cache.find(call.cluster.cypress, text(message.md5), cache, tx=call.transaction)
    call.reply.result.path = found.encode()


@method("PutFileToCache", parameters=read("path md5 cache_path preserve_expiration_timeout"))
def put_file_to_cache(call: Invocation) -> None:
    message = call.message
    put = file_cache.put(
        call.cluster.cypress,
        text(message.path),
        text(message.md5),
        text(message.cache_path),
        tx=call.transaction,
        preserve_expiration_timeout=message.preserve_expiration_timeout,
    )
    call.reply.result.path = put.encode()
