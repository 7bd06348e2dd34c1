"""Public names of `ytstream_tools.testing.approved_outputs`."""

from typing import TYPE_CHECKING

from . import provided_by

if TYPE_CHECKING:
    from ytstream_tools.testing.approved_outputs import assert_approved as assert_approved

__getattr__ = provided_by("ytstream_tools.testing.approved_outputs")
