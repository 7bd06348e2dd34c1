"""What the cluster does: tablet transactions with their conflicts, folders, rows."""

from __future__ import annotations

from collections.abc import Iterator

from .options import Model
from .state import At, Counts, Driver, Folder, Head, State, Step, Table, Write

Steps = Iterator[tuple[Step, State]]


def transact(
    model: Model,
    state: State,
    step: Step,
    write: Write,
    then: Driver,
    otherwise: At = At.RAISE,
) -> Steps:
    """Commit a tablet transaction: it is applied, or its reply is lost, or it comes late."""
    number = step.driver
    yield step, moved(applied(model, state, write), number, then)
    if not state.faults:
        return
    fewer = state._replace(faults=state.faults - 1)
    if "lost" in model.kinds:
        lost = failed(applied(model, fewer, write), number, otherwise)
        yield step._replace(note=f"{step.note}: applied, the reply is lost"), lost
    if "late" in model.kinds:
        late = failed(fewer._replace(late=(*fewer.late, write)), number, otherwise)
        yield step._replace(note=f"{step.note}: no reply, not applied yet"), late


def applied(model: Model, state: State, write: Write) -> State:
    """Write the rows. Open and late transactions that write one of them have a conflict now."""
    head, consumer, out, folders, late, drivers, starts, faults, aside = state
    if write.rows:
        out = counted(out, write.rows)
    if write.total:
        out = write.total
    if write.head is not None:
        head, starts = write.head, max(starts, write.head.epoch)
        if aside:  # a batch writes its row with the head
            aside = tuple(_named(table, head) for table in aside)
    if write.consumer >= 0:
        consumer = write.consumer
    if late:
        late = tuple(other for other in late if not _conflict(other, write))
    # T writes head and consumer; in head_outside it writes the consumer alone.
    if write.consumer >= 0 or (write.head is not None and model.mutant != "head_outside"):
        drivers = tuple(
            driver._replace(conflict=True)
            if At.STATE <= driver.at <= At.COMMIT and number != write.owner
            else driver
            for number, driver in enumerate(drivers)
        )
    return State(head, consumer, out, folders, late, drivers, starts, faults, aside)


def _named(table: Table, head: Head) -> Table:
    at_it = (table.epoch, table.batch) == (head.folder, head.batch)
    return table._replace(named=True) if at_it else table


def shelved(state: State, driver: Driver, rows: tuple[int, ...]) -> State:
    """Write a table aside."""
    table = Table(driver.epoch, driver.batch, rows)
    return state._replace(aside=tuple(sorted((*state.aside, table))))


def published(state: State, tables: tuple[Table, ...]) -> State:
    """Move tables into place; a table is aside no more then."""
    out = state.out
    for table in tables:
        out = counted(out, table.rows)
    aside = tuple(table for table in state.aside if table not in tables)
    return state._replace(out=out, aside=aside)


def settled(model: Model, state: State, epoch: int) -> State:
    """Publish what the ledger names, and remove what older epochs have left."""
    publish = model.mutant == "nothing_removed"
    state = published(state, tuple(t for t in state.aside if t.named or publish))
    newer = model.mutant == "removed_newer"
    aside = tuple(table for table in state.aside if table.epoch >= epoch and not newer)
    return state._replace(aside=aside)


def _conflict(one: Write, other: Write) -> bool:
    both_move = one.consumer >= 0 and other.consumer >= 0
    return both_move or (one.head is not None and other.head is not None)


def refused(
    model: Model, state: State, number: int, names: tuple[str, ...], why: str, at: At = At.RAISE
) -> tuple[Step, State]:
    """End the query. It has no cause if the epoch is the newest and the consumer in its place.

    Where outputs are replayed a frozen driver may move the consumer back, and a batch that begins
    there is refused for that.
    """
    driver, head = state.drivers[number], state.head
    if model.replays:
        in_place = driver.at not in (At.OPEN, At.RECORD) or driver.start == head.end
    else:
        in_place = state.consumer == head.end
    causeless = head.epoch == driver.epoch and in_place
    return Step(number, names, f"refused: {why}", causeless), failed(state, number, at)


def failed(state: State, number: int, at: At) -> State:
    """Abort what is open; the driver goes on with the purge, or with its next start."""
    driver = state.drivers[number]
    if at is At.RAISE:
        return moved(state, number, Driver(At.RAISE, driver.epoch))
    return moved(state, number, Driver(at, driver.epoch, batch=driver.batch))


def moved(state: State, number: int, driver: Driver) -> State:
    head, consumer, out, folders, late, drivers, starts, faults, aside = state
    drivers = (*drivers[:number], driver, *drivers[number + 1 :])
    return State(head, consumer, out, folders, late, drivers, starts, faults, aside)


def filed(model: Model, state: State, number: int, driver: Driver, folder: Folder) -> State:
    """Return the state with this driver and the new contents of its folder."""
    head, consumer, out, folders, late, drivers, starts, faults, aside = state
    place = folder_of(model, driver) - 1
    folders = (*folders, *(None,) * (place + 1 - len(folders)))
    folders = (*folders[:place], folder, *folders[place + 1 :])
    drivers = (*drivers[:number], driver, *drivers[number + 1 :])
    return State(head, consumer, out, folders, late, drivers, starts, faults, aside)


def folder_of(model: Model, driver: Driver) -> int:
    return 1 if model.mutant == "shared_folder" else driver.epoch


def own(model: Model, state: State, driver: Driver) -> Folder:
    folder = state.folders[folder_of(model, driver) - 1]
    assert folder is not None, "a driver's own folder is kept"
    return folder


def counted(counts: Counts, rows: tuple[int, ...]) -> Counts:
    return tuple(min(2, count + (row in rows)) for row, count in enumerate(counts))
