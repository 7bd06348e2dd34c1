"""The job and its sample, for the fixtures of ytstream.testing."""

from __future__ import annotations

import pytest

from sample import SAMPLE
from ytstream import Job
from ytstream.demo.sample import Sample

from {{ cookiecutter.__package }}.job import JOB

pytest_plugins = ["ytstream.testing.fixtures"]


@pytest.fixture(scope="session")
def job() -> Job:
    """The declaration in job.py."""
    return JOB


@pytest.fixture(scope="session")
def sample() -> Sample:
    """The rows of sample/, and what must come of them."""
    return SAMPLE
