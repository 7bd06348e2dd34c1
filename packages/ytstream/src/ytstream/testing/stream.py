"""Public names of `ytstream_tools.testing.job_stream`."""

from typing import TYPE_CHECKING

from . import provided_by

if TYPE_CHECKING:
    from ytstream_tools.testing.job_stream import Stream as Stream
    from ytstream_tools.testing.job_stream import assert_exact as assert_exact

__getattr__ = provided_by("ytstream_tools.testing.job_stream")
