"""What holds after every step."""

from __future__ import annotations

from .cluster import published
from .options import Model
from .state import At, Folder, State, Step

_AT_REST = (At.START, At.PLAN)
"""The driver has nothing on its way: head and consumer agree."""


def broken(model: Model, before: State, step: Step, state: State) -> str:
    """Return what this step has broken, or nothing."""
    if step.causeless:
        return "the newest epoch is refused without cause"
    head, out = state.head, state.out
    if out is not before.out or head is not before.head or state.aside is not before.aside:
        out = _named(state) if state.aside else out
        if head.end < before.head.end:
            return f"the head went back from row {before.head.end} to row {head.end}"
        if model.keyed and (wrong := _wrong_total(model, state)):
            return wrong
        if 0 in out[: head.end]:
            return f"row {out.index(0)} is missing, and the head has passed it"
        if (model.static or not model.replays) and 2 in out:
            row = out.index(2)
            return f"row {row} is written twice" if row < model.rows else "windows close twice"
    if model.stateful and (head is not before.head or state.folders is not before.folders):
        wrong = _wrong_state(model, state)
        if wrong:
            return wrong
    if state.consumer != head.end and not model.replays and _at_rest(model, state):
        return f"the consumer is at row {state.consumer}, the head at row {head.end}"
    return ""


def _wrong_total(model: Model, state: State) -> str:
    """Return why the total is not of the rows up to the head; a replayed batch is ahead of it."""
    end, total = state.head.end, state.out[: model.rows]
    if 0 in total[:end] or (not model.replays and any(total[end:])):
        return f"the total is of {total}, and the head is at row {end}"
    return ""


def _named(state: State) -> tuple[int, ...]:
    """Return what is published, and what the next start would publish."""
    return published(state, tuple(table for table in state.aside if table.named)).out


def drained(model: Model, state: State) -> bool:
    """Say whether every row was read and every window closed."""
    if state.head.end < model.rows:
        return False
    if model.static and 0 in state.out[: model.rows]:
        return False
    if state.consumer < model.rows:
        return False
    return not model.stateful or _counts(state)[model.rows] > 0


def _counts(state: State) -> tuple[int, ...]:
    folder = state.folders[state.head.folder - 1] or Folder()
    return dict(folder.states).get(state.head.batch + 1, ())


def _wrong_state(model: Model, state: State) -> str:
    head = state.head
    between = any(driver.at is At.HEAD for driver in state.drivers)  # of head_outside
    if head.batch < 0 or between:
        return ""
    counts = _counts(state)
    if not counts:
        return f"version {head.batch + 1} of the state is missing"
    closed = counts[model.rows] if model.replays else state.out[model.rows]
    if counts == (*(int(row < head.end) for row in range(model.rows)), closed):
        return ""
    return f"the state of batch {head.batch} has counted {counts[:-1]}, closed {counts[-1]}"


def _at_rest(model: Model, state: State) -> bool:
    if "skip" in model.kinds and state.consumer < state.head.end:
        return False
    newest = state.head.epoch
    return any(driver.at in _AT_REST and driver.epoch == newest for driver in state.drivers)
