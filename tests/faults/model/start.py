"""The steps before every start of a query."""

from __future__ import annotations

from .cluster import Steps, filed, folder_of, moved, refused, transact
from .options import Model
from .state import GONE, At, Driver, Folder, Head, State, Step, Write


def raise_epoch(model: Model, state: State, number: int) -> Steps:
    """Write the next epoch with compare-and-set; end the process if the epoch is foreign.

    A process raises freely once. A raise whose reply was lost is told from a foreign one by the
    head's owner.
    """
    driver, head, names = state.drivers[number], state.head, ("raise_epoch",)
    mine = head.owner == number
    if model.mutant == "number_alone":
        mine = head.epoch == driver.epoch
    if model.mutant == "no_epoch":
        if state.starts < model.starts:
            then = Driver(At.READ, state.starts + 1)
            begun = state._replace(starts=state.starts + 1)
            yield Step(number, (), f"start {begun.starts}"), moved(begun, number, then)
    elif driver.epoch and not mine:
        yield (
            Step(number, names, "superseded: the process ends", head.owner == number),
            moved(state, number, GONE),
        )
    elif state.starts < model.starts:
        epoch = head.epoch + 1
        write = Write("raise_epoch", number, head._replace(epoch=epoch, owner=number))
        step = Step(number, names, f"epoch {epoch}")
        yield from transact(model, state, step, write, Driver(At.READ, epoch))


def read_positions(model: Model, state: State, number: int) -> Steps:
    """Read head and consumer."""
    epoch, head = state.drivers[number].epoch, state.head
    seen = Driver(At.FOLDER, epoch, head.folder, head.batch, end=head.end, consumer=state.consumer)
    yield Step(number, ("read_positions",)), moved(state, number, seen)


def new_folder(model: Model, state: State, number: int) -> Steps:
    """Copy the head's folder and repair the copy, in one master transaction.

    A late or a failed one leaves at most a folder that no head will ever name. Without state it is
    an empty one on the driver's disk, and the head's is gone.
    """
    driver, names = state.drivers[number], ("new_folder",)
    is_copied = driver.folder and not model.empties
    old = state.folders[driver.folder - 1] if is_copied else Folder()
    if old is None:
        yield refused(model, state, number, names, f"folder {driver.folder} is gone")
        return
    offsets, commits, states = old
    batch = driver.batch
    if model.empties:
        folder, batch = Folder(), -1
    else:
        if model.job == "stateless" or model.mutant == "planned_again":
            offsets = tuple(entry for entry in offsets if entry[0] <= batch)
        elif model.mutant != "planned_behind":
            # A batch that ends before the head was planned while the consumer was behind it. It was
            # refused then, so it left no state; run again, it would move head and consumer back.
            offsets = tuple(
                (entry, end) for entry, end in offsets if entry <= batch or end >= driver.end
            )
        if model.mutant != "no_repair":
            commits = tuple(entry for entry in commits if entry < batch)
            commits += () if batch < 0 else (batch,)
        folder = Folder(offsets, commits, states)
    then = driver._replace(at=At.BEGIN, folder=0, batch=batch)
    source = f"copy of {driver.folder}" if is_copied else "empty"
    step = Step(number, names, f"folder {folder_of(model, driver)}, {source}")
    yield step, filed(model, state, number, then, folder)


def begin(model: Model, state: State, number: int) -> Steps:
    """Check the epoch, name the folder in the head, move the consumer: the start is committed."""
    driver, names = state.drivers[number], ("begin",)
    unchecked = model.mutant in ("no_epoch", "begin_unchecked")
    if state.head.epoch != driver.epoch and not unchecked:
        yield refused(model, state, number, names, "the epoch is not mine")
    elif state.consumer != driver.consumer:
        step, after = refused(model, state, number, names, "the consumer has moved")
        # A frozen driver's SPYT confirms its batch without a look: that is a cause.
        yield step._replace(causeless=step.causeless and not model.replays), after
    else:
        folder = folder_of(model, driver)
        head = Head(driver.epoch, number, folder, driver.batch, driver.end)
        write = Write("begin", number, head, driver.end)
        note = f"batch {driver.batch} in folder {folder} ends at row {driver.end}"
        then = Driver(At.START, driver.epoch)
        yield from transact(model, state, Step(number, names, note), write, then)
