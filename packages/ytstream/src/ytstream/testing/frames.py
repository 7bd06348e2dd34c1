"""Public names of `ytstream_tools.testing.unit_frames`."""

from typing import TYPE_CHECKING

from . import provided_by

if TYPE_CHECKING:
    from ytstream_tools.testing.unit_frames import assert_outputs as assert_outputs
    from ytstream_tools.testing.unit_frames import assert_rows as assert_rows
    from ytstream_tools.testing.unit_frames import events_frame as events_frame
    from ytstream_tools.testing.unit_frames import output_frames as output_frames
    from ytstream_tools.testing.unit_frames import reference_frame as reference_frame
    from ytstream_tools.testing.unit_frames import rejected_frames as rejected_frames

__getattr__ = provided_by("ytstream_tools.testing.unit_frames")
