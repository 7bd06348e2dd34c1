"""Public names of `ytstream_tools.testing.stream_batches`."""

from typing import TYPE_CHECKING

from . import provided_by

if TYPE_CHECKING:
    from ytstream_tools.testing.stream_batches import stream_outputs as stream_outputs
    from ytstream_tools.testing.stream_batches import streamed as streamed

__getattr__ = provided_by("ytstream_tools.testing.stream_batches")
