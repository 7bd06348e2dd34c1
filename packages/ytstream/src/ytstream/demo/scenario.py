"""Public names of `ytstream_tools.demo.crash_scenario`."""

from typing import TYPE_CHECKING

from ..testing import provided_by

if TYPE_CHECKING:
    from ytstream_tools.demo.crash_scenario import play as play

__getattr__ = provided_by("ytstream_tools.demo.crash_scenario")
