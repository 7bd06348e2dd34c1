"""Public names of `ytstream_tools.testing.captured_rows`."""

from typing import TYPE_CHECKING

from . import provided_by

if TYPE_CHECKING:
    from ytstream_tools.testing.captured_rows import accepted as accepted
    from ytstream_tools.testing.captured_rows import run_through as run_through

__getattr__ = provided_by("ytstream_tools.testing.captured_rows")
