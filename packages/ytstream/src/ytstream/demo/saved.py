"""Public names of `ytstream_tools.demo.saved_rows`."""

from typing import TYPE_CHECKING

from ..testing import provided_by

if TYPE_CHECKING:
    from ytstream_tools.demo.saved_rows import SavedRows as SavedRows

__getattr__ = provided_by("ytstream_tools.demo.saved_rows")
