"""A static table to build references from."""

from __future__ import annotations

import pytest

from tests.support.helpers import ContextOf
from tests.support.reference_steps import Source


@pytest.fixture
def source(context_of: ContextOf, root: str) -> Source:
    return Source(context_of("transactional"), root)
