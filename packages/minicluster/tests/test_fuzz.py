"""A few rounds of the fuzzer; `python -m tools.fuzz.run` runs it for longer."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.fuzz import run as fuzz


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", fuzz.FAMILIES)
def test_no_input_breaks_the_server(family: str, seed: int) -> None:
    counts: Counter[str] = Counter()
    fuzz.run(family, seed, counts, lambda: False)
    assert counts.total() == fuzz.ROUND
    # Inputs that are all nonsense would test only the door.
    if family in ("http", "protobuf", "rowsets"):
        assert min(counts["accepted"], counts["refused"]) > fuzz.ROUND // 50
