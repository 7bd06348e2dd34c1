"""Rows as files of YSON, one row a line: captured batches, saved samples, approved outputs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from yt import yson

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode


def line_of(row: Mapping[str, Any]) -> bytes:
    """Return a row as its line, with the columns in the order of their names."""
    found: bytes = yson.dumps(dict(row), yson_format="text", sort_keys=True)
    return found + b";\n"


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as YSON, one a line."""
    path.write_bytes(b"".join(map(line_of, rows)))


def read(path: Path, remedy: str = "restore it, or capture it again") -> list[dict[str, Any]]:
    """Return the rows of a file. Raises JobError for a file that write() has not written."""
    try:
        # Without attributes a null is None, and not an object of YSON.
        found = yson.loads(
            path.read_bytes(), yson_type="list_fragment", always_create_attributes=False
        )
        return list(found)
    except (OSError, yson.YsonError) as error:
        raise JobError(f"{path} cannot be read: {error}", remedy, code=ErrorCode.FILE) from error
