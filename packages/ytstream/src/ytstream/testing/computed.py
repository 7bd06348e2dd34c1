"""Public names of `ytstream_tools.testing.computed_outputs`."""

from typing import TYPE_CHECKING

from . import provided_by

if TYPE_CHECKING:
    from ytstream_tools.testing.computed_outputs import Computed as Computed

__getattr__ = provided_by("ytstream_tools.testing.computed_outputs")
