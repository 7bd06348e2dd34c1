"""Files: bytes in, the same bytes out."""

from __future__ import annotations

from typing import Any

import pytest
from yt.wrapper.errors import YtResolveError, YtResponseError


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_a_file_comes_back_as_it_was_written(client: Any, root: str, size: int) -> None:
    """Source: documentation, user-guide/storage/files (usage)"""
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    client.write_file(f"{root}/f", data)
    assert client.read_file(f"{root}/f").read() == data
    assert client.get(f"{root}/f/@uncompressed_data_size") == size


def test_a_second_write_replaces(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/ypath (supported attributes, append)"""
    client.write_file(f"{root}/f", b"first")
    client.write_file(f"{root}/f", b"2")
    assert client.read_file(f"{root}/f").read() == b"2"


def test_a_write_may_append(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/files (usage)"""
    client.write_file(f"{root}/f", b"first")
    client.write_file(f"<append=%true>{root}/f", b", second")
    assert client.read_file(f"{root}/f").read() == b"first, second"


def test_a_part_is_read(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/files (usage)"""
    client.write_file(f"{root}/f", b"0123456789")
    assert client.read_file(f"{root}/f", offset=3, length=4).read() == b"3456"
    assert client.read_file(f"{root}/f", offset=8, length=99).read() == b"89"


def test_the_checksum_is_kept_when_asked_for(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/file_commands.py (write_file, compute_md5)"""
    client.write_file(f"{root}/f", b"abc", compute_md5=True)
    assert client.get(f"{root}/f/@md5") == "900150983cd24fb0d6963f7d28e17f72"


def test_a_written_file_is_isolated_in_a_transaction(client: Any, other: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/transactions (versioning)"""
    client.write_file(f"{root}/f", b"old")
    with client.Transaction():
        client.write_file(f"{root}/f", b"new")
        assert client.read_file(f"{root}/f").read() == b"new"
        assert other.read_file(f"{root}/f").read() == b"old"
    assert other.read_file(f"{root}/f").read() == b"new"


def test_moving_keeps_the_contents(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (move)"""
    client.write_file(f"{root}/f", b"data")
    client.move(f"{root}/f", f"{root}/g")
    assert client.read_file(f"{root}/g").read() == b"data"


def test_only_files_are_read_as_files(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/files (general information)"""
    with pytest.raises(YtResolveError):
        client.read_file(f"{root}/none").read()
    with pytest.raises(YtResponseError):
        client.read_file(root).read()
