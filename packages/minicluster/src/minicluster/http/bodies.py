"""Request bodies as clients send them: whole, within a limit, decompressed.

ytsaurus-client sends a zlib stream and calls it "gzip" (`compression.py` there); the HTTP library's
own decompression refuses it.
"""

from __future__ import annotations

import zlib
from importlib import import_module

from aiohttp import web

from ..core.errors import generic

MAX_BODY = 512 << 20
"""A request is held in memory as a whole; clients cut what they write into far smaller chunks."""
_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS


async def read(request: web.Request) -> bytes:
    """Return the whole body, decompressed. Raises YtError, HTTPRequestEntityTooLarge."""
    try:
        data = await request.read()
    except web.RequestPayloadError as error:
        raise generic(f"Error reading the request body: {error}") from None
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    match encoding:
        case "identity" | "":
            return data
        case "gzip":
            return _gunzip(data)
        case "br":
            return _brotli(data)
    raise generic(f'Unsupported Content-Encoding "{encoding}"')


def _gunzip(data: bytes) -> bytes:
    pieces: list[bytes] = []
    room = MAX_BODY
    while data:
        member = zlib.decompressobj(_ZLIB_OR_GZIP)
        try:
            piece = member.decompress(data, room + 1)  # 0 would mean: without a limit
        except zlib.error as error:
            raise generic(f"Error decompressing the request body: {error}") from None
        room -= len(piece)
        if room < 0:
            raise web.HTTPRequestEntityTooLarge(max_size=MAX_BODY, actual_size=MAX_BODY + 1)
        if not member.eof:
            raise generic("Error decompressing the request body: it is cut short")
        pieces.append(piece)
        data = member.unused_data
    return b"".join(pieces)


def _brotli(data: bytes) -> bytes:
    # A client uses it only if its environment has it, and that is the cluster's one as a rule.
    try:
        brotli = import_module("brotli")
    except ImportError:
        raise generic('Content-Encoding "br" needs the package "brotli" here as well') from None
    try:
        plain: bytes = brotli.decompress(data)
    except brotli.error as error:
        raise generic(f"Error decompressing the request body: {error}") from None
    return plain
