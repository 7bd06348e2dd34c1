"""The cache of uploaded files: a folder with one node per MD5 sum.

The places in it are those of native/client_file_cache_impl.cpp.
"""

from __future__ import annotations

from ..core.errors import RESOLVE, YtError, generic
from .commands import Cypress
from .kinds import expect


def place(cache: str, md5: str) -> str:
    """Return the path of a sum in a cache: the last two digits are a folder."""
    return f"{cache}/{md5[-2:]}/{md5}"


def find(cypress: Cypress, md5: str, cache: str, *, tx: str | None = None) -> str:
    """Return the path of the file with that sum, or an empty text if the cache has none."""
    path = place(cache, md5)
    try:
        node = cypress.resolve(path, tx=tx)
    except YtError as error:
        if error.code != RESOLVE:
            raise
        return ""
    return path if node.type == "file" and node.payload.md5 == md5 else ""


def put(
    cypress: Cypress,
    path: str,
    md5: str,
    cache: str,
    *,
    tx: str | None = None,
    preserve_expiration_timeout: bool = False,
) -> str:
    """Copy a file into the cache; return its path there. Raises YtError for another sum."""
    node = cypress.resolve(path, tx=tx)
    expect(node, path, "file")
    found = node.payload.md5
    if found != md5:
        raise generic(f'MD5 mismatch; expected "{md5}", found "{found or ""}"')
    cypress.resolve(cache, tx=tx)
    if present := find(cypress, md5, cache, tx=tx):
        return present
    target = place(cache, md5)
    options = {"preserve_expiration_timeout": preserve_expiration_timeout}
    cypress.copy(path, target, tx=tx, recursive=True, force=True, **options)
    return target
