"""One generated project for each variant, shared by the tests that read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import VARIANTS, generate, variant_answers


@pytest.fixture(scope="session", params=VARIANTS, ids="-".join)
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every variant that is offered."""
    return generate(tmp_path_factory.mktemp("variant"), **variant_answers(request.param))


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes without a PYTHONPATH: a Spark session in this process leaves one.

    By it cookiecutter would find this checkout's extension for the template of another folder.
    """
    monkeypatch.delenv("PYTHONPATH", raising=False)
