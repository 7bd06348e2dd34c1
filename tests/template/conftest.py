"""One generated project for each variant, shared by the tests that read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import VARIANTS, generate, variant_answers


@pytest.fixture(scope="session", params=VARIANTS, ids="-".join)
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every variant that is offered; Spark 3.5 in every second of them."""
    return generate(tmp_path_factory.mktemp("variant"), **variant_answers(request.param))
