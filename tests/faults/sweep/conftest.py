"""The lab of the plays that have one: a minicluster and a session for a module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.sweep import lab


@pytest.fixture(scope="module")
def opened() -> Iterator[lab.Lab]:
    """Give a lab; it is closed after the module's last test."""
    with lab.opened() as found:
        yield found
