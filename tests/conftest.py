"""Fixtures of the template's tests: generated projects, and environments to run them in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from local_extensions.versions import SPARK_VERSIONS
from tests.support import project
from tools.overlay import overlay
from ytstream.settings.environment import leave_clusters

Generate = Callable[..., Path]

# A cluster in the environment is not these tests', but for the conformance suite on one.
if not os.environ.get("YT_CONFORMANCE_PROXY"):
    leave_clusters()

# A busy machine is slow: how long an example takes proves nothing.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.load_profile("here")

_FIRST = (
    "test_the_demo_with_columns",
    "tests/faults/sweep/test_sample.py",
    "tests/faults/sweep/test_archives.py",
    "tests/faults/sweep/test_late.py",
)
"""The longest tests: the last to end has one core to itself, and leaves one idle. Then those with a
Spark session of their own: none other may run in their process yet."""


_COSTLY = ("slow", "spark")
"""Marks of a test that costs seconds."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run some tests before the others, and mark what `make test` leaves to `make test-all`.

    Of a test that costs seconds, `make test` runs the first set of parameters. Where each of them
    is a promise of its own, the test has the mark `each_case`.
    """
    items.sort(key=lambda item: [part not in item.nodeid for part in _FIRST])
    seen = set[str]()
    for item in items:
        name = item.nodeid.partition("[")[0]
        is_first = name not in seen
        seen.add(name)
        is_costly = any(map(item.get_closest_marker, _COSTLY))
        if is_costly and not is_first and item.get_closest_marker("each_case") is None:
            item.add_marker("thorough")


@pytest.fixture(scope="session")
def generate(tmp_path_factory: pytest.TempPathFactory) -> Generate:
    """``generate(project_name=..., ...)``: a project in a new folder outside the repository.

    Options left out take their defaults, values are taken literally; returns the project's root.
    """
    return lambda **answers: project.generate(tmp_path_factory.mktemp("generated"), **answers)


@pytest.fixture(scope="session")
def plain(generate: Generate) -> Path:
    """A project with the default answers, for tests that change nothing in it."""
    return generate()


@pytest.fixture(scope="session")
def environments() -> dict[str, Path]:
    """The template's environments, by Spark version. This process runs in the default's."""
    return {name: project.environment_of(name) for name in SPARK_VERSIONS}


class _Installed(dict[str, Path]):
    """Environments with the wheels, each made when a test asks for it."""

    def __init__(self, environments: dict[str, Path], folder: Path) -> None:
        self._environments, self._folder = environments, folder

    def __missing__(self, spark: str) -> Path:
        self[spark] = overlay(self._environments[spark], self._folder / spark)
        return self[spark]


@pytest.fixture(scope="session")
def installed(
    environments: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Environments to run a generated project in: they have the wheels that it vendors."""
    return _Installed(environments, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="session")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all generated projects: they share their libraries."""
    return tmp_path_factory.mktemp("mypy-cache")
