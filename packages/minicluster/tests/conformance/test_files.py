"""Files: bytes in, the same bytes out."""

from __future__ import annotations

from typing import Any

import pytest
from yt import yson
from yt.wrapper.driver import make_request
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


def test_files_are_concatenated(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (concatenate)"""
    for name in ("a", "b"):
        client.write_file(f"{root}/{name}", name.encode() * 3)
    sources = [f"{root}/a", f"{root}/b"]
    client.concatenate(sources, f"{root}/all")
    assert client.read_file(f"{root}/all").read() == b"aaabbb"
    client.concatenate(sources, f"<append=%true>{root}/all")
    assert client.read_file(f"{root}/all").read() == b"aaabbbaaabbb"
    client.concatenate([f"{root}/b"], f"{root}/all")
    assert client.read_file(f"{root}/all").read() == b"bbb"


def test_what_has_no_content_is_not_concatenated(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (concatenate)"""
    client.write_file(f"{root}/f", b"x")
    client.create("document", f"{root}/d")
    for source, destination in (("f", "d"), ("d", "f")):
        paths = {"source_paths": [f"{root}/{source}"], "destination_path": f"{root}/{destination}"}
        with pytest.raises(YtResponseError):
            make_request("concatenate", paths, client=client)
    assert client.read_file(f"{root}/f").read() == b"x"


def test_a_large_file_is_written_in_parallel(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/parallel_writer.py (make_parallel_write_request)"""
    client.config["write_parallel"].update({"enable": yson.to_yson_type(True)})
    client.config["write_parallel"].update({"max_thread_count": 2})
    client.config["write_retries"]["chunk_size"] = 1 << 20
    client.config["remote_temp_files_directory"] = f"{root}/parts"
    data = bytes(range(256)) * 12_000
    client.write_file(f"{root}/f", data)
    assert client.read_file(f"{root}/f").read() == data


def test_a_known_state_of_a_file_is_not_sent_again(client: Any, root: str) -> None:
    """Source: server test, client/driver/file_commands.cpp (TReadFileCommand, etag)"""
    path = f"{root}/f"
    client.write_file(path, b"data")

    def read(state: str) -> bytes:
        answer: bytes = make_request("read_file", {"path": path, "etag": state}, client=client)
        return answer

    state = f"{client.get(path + '/@id')}:{client.get(path + '/@revision')}"
    assert read(state) == b""
    assert read("1-2-3-4:5") == b"data"
    client.write_file(path, b"other")
    assert read(state) == b"other"
