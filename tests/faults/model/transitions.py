"""The protocol of a start and of a micro-batch, as steps from one state to the next.

A step is a function of a state that yields (step, state after it), one pair for each outcome.
Faults are steps too, as many as the bounds allow. There is no lock: a process may start at any
time, so nothing that the search finds right hangs on the lock. A driver that does nothing for a
while is a frozen driver, with all it believes.

What is left out, and why nothing is lost by it:

- What a driver does inside its own open transaction is joined with the step before it, because
  nobody sees it before the commit.
- `raise_epoch` and `begin` are one step each: they read and write the head in one transaction, so
  if anybody wrote it meanwhile they have a conflict, leave no trace and are done again.
- A start publishes and removes tables in one step, since no older driver can commit by then. A
  table that two drivers publish moves once.
- A late transaction is forgotten at its first conflict, because it can only fail. So is a folder
  that no step can read any more. A late `new_folder` makes such a folder.

Not in the model: several queues and partitions, trimmed or recreated queues, a consumer moved by
hand, the removal of old folders, the time a transaction may last.
"""

from __future__ import annotations

from collections.abc import Callable

from . import batch, start
from .cluster import Steps, applied, failed, moved
from .options import Model
from .state import GONE, NOBODY, At, Head, State, Step, Write

DO: dict[At, Callable[[Model, State, int], Steps]] = {
    At.IDLE: start.raise_epoch,
    At.RAISE: start.raise_epoch,
    At.READ: start.read_positions,
    At.FOLDER: start.new_folder,
    At.BEGIN: start.begin,
    At.START: batch.read_logs,
    At.PLAN: batch.plan,
    At.OPEN: batch.verify_head,
    At.STATE: batch.write_state,
    At.LOG: batch.write_commits,
    At.COMMIT: batch.commit,
    At.PURGE: batch.purge,
    At.HEAD: batch.write_head_outside,
    At.OUTPUT: batch.write_outputs,
    At.RECORD: batch.record,
    At.RECORDED: batch.write_commits,
}

FRAGILE = {
    At.READ: At.RAISE,
    At.FOLDER: At.RAISE,
    At.START: At.RAISE,
    At.PLAN: At.RAISE,
    At.OPEN: At.RAISE,
    At.STATE: At.PURGE,
    At.LOG: At.PURGE,
    At.PURGE: At.RAISE,
    At.OUTPUT: At.RAISE,
    At.RECORD: At.RAISE,
    At.RECORDED: At.RAISE,
}
"""Steps whose requests may fail, done or not: in T SPYT purges first. (A tablet transaction that
fails is a late one that never comes.)"""


def first(model: Model) -> State:
    nothing = (0,) * (model.rows + 1)
    return State(Head(), 0, nothing, (), (), (GONE,) * model.drivers, 0, model.faults)


def steps(model: Model, state: State) -> Steps:
    """Yield every step that can come next."""
    for number, driver in enumerate(state.drivers):
        yield from DO[driver.at](model, state, number)
        if state.aside:
            yield from batch.publish(model, state, number)
        if state.faults and driver.at:
            yield from _faults(model, state, number)
    for write in state.late:
        others = state._replace(late=tuple(other for other in state.late if other is not write))
        step = Step(NOBODY, (write.name,), "the late transaction is applied")
        yield step, applied(model, others, write._replace(owner=NOBODY))


def _faults(model: Model, state: State, number: int) -> Steps:
    at, fewer = state.drivers[number].at, state._replace(faults=state.faults - 1)
    if "error" in model.kinds and at in FRAGILE:
        yield Step(number, (), "a request fails"), failed(fewer, number, FRAGILE[at])
    if "crash" in model.kinds:
        dead = moved(fewer, number, GONE)
        if dead.head.owner == number:  # the next process here is another one
            dead = dead._replace(head=dead.head._replace(owner=NOBODY))
        if dead.late:
            dead = dead._replace(late=tuple(_orphaned(write, number) for write in dead.late))
        yield Step(number, (), "the process is killed"), dead


def _orphaned(write: Write, number: int) -> Write:
    if write.owner != number:
        return write
    return write._replace(owner=NOBODY, head=write.head and write.head._replace(owner=NOBODY))
