"""The model's steps are the runtime's functions."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.faults.model.variants import STEPS


@pytest.mark.parametrize("name", [name for name in STEPS.values() if name.startswith("ytstream.")])
def test_a_step_is_a_function_of_the_runtime(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert callable(getattr(import_module(module), function))
