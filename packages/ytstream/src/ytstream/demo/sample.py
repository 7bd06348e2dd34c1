"""Public names of `ytstream_tools.demo.job_sample`."""

from typing import TYPE_CHECKING

from ..testing import provided_by

if TYPE_CHECKING:
    from ytstream_tools.demo.job_sample import Sample as Sample

__getattr__ = provided_by("ytstream_tools.demo.job_sample")
