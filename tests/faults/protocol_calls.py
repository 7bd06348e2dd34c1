"""Which functions of the protocol's table the runtime has called, in the order of their ends."""

from __future__ import annotations

import pytest

from tests.faults.protocol import STEPS
from ytstream.ledger import batch_commit, positions
from ytstream.query import batch
from ytstream.recovery import checkpoint_repair, epoch, start

_CALLED_IN = {
    "raise_epoch": epoch,
    "read_positions": positions,
    "new_folder": checkpoint_repair,
    "begin": start,
    "verify_head": batch,
    "verify_start": batch,
    "write_outputs": batch,
    "audit": batch,
    "write_head": batch_commit,
}
"""The module by whose name for it a step is called."""


def recorded(patch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by the name of each step that is done from now on."""
    calls: list[str] = []
    for step, module in _CALLED_IN.items():
        name = STEPS[step].function.rpartition(".")[2]
        original = getattr(module, name)

        def call(
            *arguments: object, _step: str = step, _original: object = original, **named: object
        ) -> object:
            assert callable(_original)
            found = _original(*arguments, **named)
            calls.append(_step)
            return found

        patch.setattr(module, name, call)
    return calls
