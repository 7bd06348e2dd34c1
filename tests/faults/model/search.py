"""Search all interleavings, breadth first: the first failing trace is a shortest one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import lt

from .invariants import broken, drained
from .options import Model
from .state import GONE, NOBODY, At, Driver, Head, State, Step, Write
from .transitions import first, steps

STARTS_ALONE = 3
"""A driver that is alone and meets no fault needs fewer starts than this, or it is stuck."""

Trace = tuple[tuple[Step, State], ...]


@dataclass(frozen=True)
class Result:
    model: Model
    states: int
    seconds: float
    names: frozenset[str]  # of the steps that were taken
    wrong: str = ""
    trace: Trace = ()


def search(model: Model) -> Result:
    """Visit every state that the bounds allow, or the shortest way to one that is wrong."""
    began = time.monotonic()
    came_from: dict[State, State | None] = {first(model): None}
    alone, names, level = _Alone(model), set[str](), list(came_from)
    wrong = ""
    trace: Trace = ()
    while level and not wrong:
        following = []
        for before, step, after in _taken(model, level):
            names.update(step.names)
            wrong = broken(model, before, step, after)
            key = _canonical(model, after)
            if not wrong and key in came_from:
                continue
            wrong = wrong or alone.stuck(key)
            if wrong:
                trace = _trace(model, [*_path(came_from, before), key], step)
                break
            came_from[key] = before
            following.append(key)
        level = following
    seconds = time.monotonic() - began
    return Result(model, len(came_from), seconds, frozenset(names), wrong, trace)


def _taken(model: Model, level: list[State]) -> Iterator[tuple[State, Step, State]]:
    for before in level:
        for step, after in steps(model, before):
            yield before, step, after


def _canonical(model: Model, state: State) -> State:
    """Return the state in one of its equal forms: the drivers are alike, their order is free."""
    state = _forget(model, state)
    head, consumer, out, folders, late, drivers, starts, faults, aside = state
    if all(map(lt, drivers, drivers[1:])):
        return state

    def form(number: int) -> tuple[Driver, bool, list[bool]]:
        return drivers[number], head.owner == number, [write.owner == number for write in late]

    order = sorted(range(len(drivers)), key=form)
    moved = {number: place for place, number in enumerate(order)} | {NOBODY: NOBODY}
    head, drivers = _owned(head, moved[head.owner]), tuple(drivers[number] for number in order)
    late = tuple(_renumbered(write, moved) for write in late)
    return State(head, consumer, out, folders, late, drivers, starts, faults, aside)


def _renumbered(write: Write, moved: dict[int, int]) -> Write:
    owner = moved[write.owner]
    return write._replace(owner=owner, head=write.head and _owned(write.head, owner))


def _owned(head: Head, owner: int) -> Head:
    return Head(head.epoch, owner, head.folder, head.batch, head.end)


def _forget(model: Model, state: State) -> State:
    """Drop the folders that no step can read any more."""
    if model.mutant == "shared_folder":
        return state
    head, consumer, out, folders, late, drivers, starts, faults, aside = state
    if model.empties:  # on a driver's disk, as long as its query lives
        used = {driver.epoch for driver in drivers if driver.at >= At.BEGIN}
    else:
        used = {head.folder}
        for driver in drivers:
            used.add(driver.epoch if driver.at >= At.BEGIN else driver.folder)
        for write in late:
            if write.head is not None:
                used.add(write.head.folder)
    unused = [number for number, folder in enumerate(folders, 1) if folder and number not in used]
    if not unused:
        return state
    kept = tuple(None if number in unused else folder for number, folder in enumerate(folders, 1))
    return State(head, consumer, out, kept, late, drivers, starts, faults, aside)


class _Alone:
    """Can a driver that is alone, and meets no fault, read everything? Remembers the answers."""

    def __init__(self, model: Model) -> None:
        self._model = replace(model, starts=model.starts + STARTS_ALONE, faults=0)
        self._finishes: dict[State, bool] = {}

    def stuck(self, state: State) -> str:
        """Ask it of a new process, and of the driver with the newest epoch."""
        if not self.finishes(_taken_over(state)):
            return "stuck: a new process cannot finish"
        for number, driver in enumerate(state.drivers):
            newest = driver.at is not At.IDLE and driver.epoch == state.head.epoch > 0
            if newest and not self.finishes(_left_alone(self._model, state, number)):
                return "stuck: the newest driver cannot finish"
        return ""

    def finishes(self, state: State) -> bool:
        known = self._finishes.get(state)
        if known is None:
            self._finishes[state] = False  # what comes back to itself does not finish
            following = [after for _, after in steps(self._model, state)]
            known = all(map(self.finishes, following)) if following else drained(self._model, state)
            self._finishes[state] = known
        return known


def _taken_over(state: State) -> State:
    """Return what a new process finds: of the folders, only the head's matters."""
    head = state.head
    folders = (state.folders[head.folder - 1],) if head.folder else ()
    started = len(folders)
    head = Head(started, NOBODY, started, head.batch, head.end)
    aside = tuple(sorted(table._replace(epoch=0) for table in state.aside))
    return State(head, state.consumer, state.out, folders, (), (GONE,), started, 0, aside)


def _left_alone(model: Model, state: State, number: int) -> State:
    head, consumer, out, folders, _, drivers, starts, _, aside = state
    head = _owned(head, 0 if head.owner == number else NOBODY)
    alone = State(head, consumer, out, folders, (), (drivers[number],), starts, 0, aside)
    return _forget(model, alone)


def _path(came_from: dict[State, State | None], state: State | None) -> list[State]:
    path = []
    while state is not None:
        path.append(state)
        state = came_from[state]
    return path[::-1]


def _trace(model: Model, path: list[State], last: Step) -> Trace:
    """Walk the path once more, with drivers that keep their numbers."""
    state, trace = path[0], list[tuple[Step, State]]()
    for place, key in enumerate(path[1:], 2):
        step, state = next(
            (step, after)
            for step, after in steps(model, state)
            if _canonical(model, after) == key and (place < len(path) or step[1:] == last[1:])
        )
        trace.append((step, state))
    return tuple(trace)
