"""Public names of `ytstream_tools.demo.demo_text`."""

from typing import TYPE_CHECKING

from ..testing import provided_by

if TYPE_CHECKING:
    from ytstream_tools.demo.demo_text import may_repeat as may_repeat

__getattr__ = provided_by("ytstream_tools.demo.demo_text")
