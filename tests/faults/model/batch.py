"""A query's steps as Spark and SPYT take them, and ours in the middle of each batch."""

from __future__ import annotations

from .cluster import (
    Steps,
    applied,
    counted,
    failed,
    filed,
    folder_of,
    moved,
    own,
    published,
    refused,
    settled,
    shelved,
    transact,
)
from .options import ORDER, Model
from .state import At, Counts, Driver, Folder, Head, State, Step, Write


def _named(model: Model, first: str, until: str = "", *, after: bool = False) -> tuple[str, ...]:
    """Return the steps of the protocol's table from one to before another: those that are joined.

    ``after``: without the first one. Without state none is written.
    """
    order = ORDER[not model.replays]
    begin = order.index(first) + after
    end = order.index(until, begin) if until else len(order)
    return tuple(name for name in order[begin:end] if model.stateful or name != "write state")


# All guarantees: Spark's logs, and the check.


def read_logs(model: Model, state: State, number: int) -> Steps:
    """Start the query: the last planned batch runs again unless the commit log has it."""
    driver = state.drivers[number]
    names: tuple[str, ...] = ("read logs",)
    if model.static:
        names = ("publish", "remove", *names)
        state = settled(model, state, driver.epoch)
    folder = own(model, state, driver)
    ends = dict(folder.offsets)
    last = max(ends, default=-1)
    again = last >= 0 and last not in folder.commits[-1:]
    batch = last if again else last + 1
    if model.stateful and batch and batch not in dict(folder.states):
        yield refused(model, state, number, names, f"version {batch} of the state is missing")
        return
    # SPYT reads from the consumer; in the other modes from the logs, unless the consumer is ahead.
    start = state.consumer
    if model.replays:
        start = max(start, min(ends.get(batch - 1, 0), model.rows))
    if again:
        then = Driver(At.OPEN, driver.epoch, batch=batch, start=start, end=ends[batch])
        yield Step(number, names, f"batch {batch} runs again"), moved(state, number, then)
    else:
        start = start if model.replays else 0
        then = Driver(At.PLAN, driver.epoch, batch=batch, start=start, end=ends.get(last, 0))
        yield Step(number, names, f"batch {batch} is next"), moved(state, number, then)


def plan(model: Model, state: State, number: int) -> Steps:
    """Write `offsets/N` if the end differs from the last one; rows may come one at a time."""
    driver, batch = state.drivers[number], state.drivers[number].batch
    folder = own(model, state, driver)
    start = driver.start if model.replays else state.consumer
    if driver.advanced >= 0:
        start = driver.advanced
    most = min(start + model.most_rows, model.rows)
    ends = [end for end in range(start + 1, most + 1) if end != driver.end]
    if model.stateful and start == model.rows and not _closed(model, folder, batch):
        ends = [model.rows + 1]
    names: tuple[str, ...] = ("plan", "write offsets")
    if not ends:
        yield from _watch(model, state, number)
        return
    if batch in dict(folder.offsets):
        yield refused(model, state, number, names, f"offsets/{batch} exists")
        return
    if model.replays and batch and not model.is_own:
        names = _named(model, "plan", "verify_head")
        confirm = Write("confirm", number, consumer=min(driver.end, model.rows))
        state = applied(model, state, confirm)
    for end in ends:
        # Spark removes old entries; two batches are the fewest that a job may tell it to keep.
        written = Folder(
            (*(entry for entry in folder.offsets if entry[0] == batch - 1), (batch, end)),
            tuple(entry for entry in folder.commits if entry >= batch - 1),
            tuple(version for version in folder.states if version[0] >= batch),
        )
        then = driver._replace(at=At.OPEN, start=start, end=end)
        step = Step(number, names, f"batch {batch}, {_rows(model, then)}")
        yield step, filed(model, state, number, then, written)


def _watch(model: Model, state: State, number: int) -> Steps:
    """End an idle query whose consumer is not where the head is: Spark sees nothing to do.

    Where outputs are replayed a consumer behind the head is put there, if it has not moved since.
    """
    head = state.head
    mine = head.epoch == state.drivers[number].epoch
    if model.replays and mine and state.consumer < head.end and model.mutant != "no_put_back":
        put = applied(model, state, Write("put back", number, consumer=head.end))
        yield Step(number, ("watch",), f"the consumer is put to row {head.end}"), put
    if not model.replays and state.consumer != state.head.end and model.mutant != "no_watch":
        yield refused(model, state, number, ("watch",), "the consumer is not where the head is")


def verify_head(model: Model, state: State, number: int) -> Steps:
    """Check at T's start that the head is the one before this batch; then outputs go into T.

    Without state the two may run at once: T undoes all that is written.
    """
    driver = state.drivers[number]
    cached = model.mutant == "cached_check" and driver.checked
    names = _named(model, "verify_head", "write_outputs")
    if not model.replays:
        names = _named(model, "open T", "write state" if model.stateful else "write commits")
    if not (cached or model.mutant == "no_check" or _is_next(model, state, driver)):
        if model.mutant == "checked_late":
            state = _with_state(model, state, number, driver)
        checked = names[: names.index("verify_start") + 1]
        yield refused(model, state, number, checked, "the head is not the one before", At.PURGE)
        return
    if model.replays:
        at = At.OUTPUT
    elif model.stateful:
        at = At.STATE
    else:
        at = At.LOG
        if model.static:
            state = shelved(state, driver, _output(model, state, driver))
    then = driver._replace(at=at, checked=model.mutant == "cached_check")
    yield Step(number, names, _rows(model, driver)), moved(state, number, then)


def _is_next(model: Model, state: State, driver: Driver) -> bool:
    head = state.head
    if model.replays:
        in_place = driver.start == head.end or model.mutant == "start_unchecked"
    else:
        in_place = state.consumer == head.end or model.mutant == "consumer_unchecked"
    mine = head.epoch == driver.epoch and head.folder == folder_of(model, driver)
    return mine and in_place and head.batch == driver.batch - 1


def write_commits(model: Model, state: State, number: int) -> Steps:
    """Write `commits/N`, before T is committed; SPYT advances the consumer in T."""
    driver, batch = state.drivers[number], state.drivers[number].batch
    folder = own(model, state, driver)
    names = _named(model, "write commits", "" if model.replays else "commit T")
    if batch in folder.commits:
        at = At.RAISE if model.replays else At.PURGE
        yield refused(model, state, number, names, f"commits/{batch} exists", at)
        return
    then = _next_batch(model, driver) if model.replays else driver._replace(at=At.COMMIT)
    written = folder._replace(commits=(*folder.commits, batch))
    yield Step(number, names, f"commits/{batch}"), filed(model, state, number, then, written)


# transactional: the outputs, the head and the consumer are in T.


def write_state(model: Model, state: State, number: int) -> Steps:
    """Write the state's next version, outside T; then the audit, and the head in T."""
    driver = state.drivers[number]
    until = "write commits" if model.mutant != "head_outside" else "write_head"
    names = _named(model, "write state", until)
    after = _with_state(model, state, number, driver._replace(at=At.LOG))
    yield Step(number, names, f"version {driver.batch + 1}"), after


def commit(model: Model, state: State, number: int) -> Steps:
    """Commit T: outputs, head and consumer change together, or not at all."""
    driver = state.drivers[number]
    if driver.conflict:
        yield refused(model, state, number, ("commit T",), "row lock conflict", At.PURGE)
        return
    outside = model.mutant == "head_outside"
    head = None if outside else _head(model, driver, number)
    rows, total = _written(model, state, driver)
    write = Write("commit T", number, head, min(driver.end, model.rows), rows, total)
    then = driver._replace(at=At.HEAD) if outside else _next_batch(model, driver)
    step = Step(number, ("commit T",), f"batch {driver.batch}")
    yield from transact(model, state, step, write, then, At.PURGE)
    if state.faults and "skip" in model.kinds:
        fewer = state._replace(faults=state.faults - 1)
        unmoved = applied(model, fewer, write._replace(consumer=-1))
        step = step._replace(note=f"{step.note}: SPYT has not advanced the consumer")
        yield step, moved(unmoved, number, then._replace(advanced=driver.advanced))


def write_head_outside(model: Model, state: State, number: int) -> Steps:
    """Write the head after T, as the mutant head_outside does."""
    driver, names = state.drivers[number], ("write_head",)
    if state.head.epoch != driver.epoch:
        yield refused(model, state, number, names, "the epoch is not mine")
        return
    write = Write("write_head", number, _head(model, driver, number))
    step = Step(number, names, f"batch {driver.batch}")
    yield from transact(model, state, step, write, _next_batch(model, driver))


def purge(model: Model, state: State, number: int) -> Steps:
    """Remove `commits/N` and later ones, in the folder that this driver knows."""
    driver = state.drivers[number]
    folder = own(model, state, driver)
    commits = tuple(entry for entry in folder.commits if entry < driver.batch)
    after = filed(
        model,
        state,
        number,
        Driver(At.RAISE, driver.epoch),
        Folder(folder.offsets, commits, folder.states),
    )
    yield Step(number, ("purge",), f"commits from {driver.batch} on; the query has failed"), after


# idempotent and at_least_once: the outputs are visible at once, then one transaction.


def write_outputs(model: Model, state: State, number: int) -> Steps:
    """Write the outputs, and the state's next version."""
    driver = state.drivers[number]
    then, note = driver._replace(at=At.RECORD), _rows(model, driver)
    if model.static:
        written = shelved(state, driver, _output(model, state, driver))
    else:
        rows, total = _written(model, state, driver)
        write = Write("", number, rows=rows, total=total)
        written = applied(model, state, write)
        if model.keyed and state.faults and "late" in model.kinds:
            late = state._replace(faults=state.faults - 1, late=(*state.late, write))
            lost = Step(number, ("write_outputs",), f"{note}: a task hangs, the query fails")
            yield lost, failed(late, number, At.RAISE)
    names = _named(model, "write_outputs", "write state")
    if model.stateful:
        after = _with_state(model, written, number, then)
        yield Step(number, (*names, "write state"), note), after
    else:
        yield Step(number, names, note), moved(written, number, then)


def record(model: Model, state: State, number: int) -> Steps:
    """Check the head once more, and write it and move the consumer, in one transaction.

    A conflict with SPYT's move in a frozen driver leaves no trace, and it is done again. SPYT in
    this driver moves the consumer to the same row later.
    """
    driver, names = state.drivers[number], _named(model, "write state", "write commits", after=True)
    if not _is_next(model, state, driver) and model.mutant != "no_check":
        yield refused(model, state, number, names, "the head is not the one before")
        return
    head = _head(model, driver, number)
    write = Write("write_head", number, head, head.end)
    step = Step(number, names, f"batch {driver.batch}")
    yield from transact(model, state, step, write, driver._replace(at=At.RECORDED))


# Static outputs, under every guarantee.


def publish(model: Model, state: State, number: int) -> Steps:
    """Publish the tables whose batch has happened, as far as the head says."""
    driver, head = state.drivers[number], state.head
    early = model.mutant == "published_early"
    mine = [table for table in state.aside if table.epoch == driver.epoch > 0]
    done = [t for t in mine if early or (t.epoch == head.folder and t.batch <= head.batch)]
    if done and driver.at >= At.START:
        note = f"batches {' '.join(str(table.batch) for table in done)}"
        yield Step(number, ("publish",), note), published(state, tuple(done))
    if model.mutant == "removed_early" and state.aside and driver.at in (At.IDLE, At.RAISE):
        yield Step(number, ("remove",)), settled(model, state, state.head.epoch + 1)


# What a batch reads and leaves behind.


def _next_batch(model: Model, driver: Driver) -> Driver:
    start = min(driver.end, model.rows) if model.replays else 0
    return Driver(
        At.PLAN,
        driver.epoch,
        batch=driver.batch + 1,
        start=start,
        end=driver.end,
        advanced=min(driver.end, model.rows) if model.is_own and not model.replays else -1,
        checked=driver.checked,
    )


def _head(model: Model, driver: Driver, number: int) -> Head:
    end = min(driver.end, model.rows)
    return Head(driver.epoch, number, folder_of(model, driver), driver.batch, end)


def _output(model: Model, state: State, driver: Driver) -> tuple[int, ...]:
    """Return the rows of a batch; windows close unless the state says that they have."""
    rows = tuple(range(driver.start, min(driver.end, model.rows)))
    closes = driver.end > model.rows
    if closes and not _closed(model, own(model, state, driver), driver.batch):
        rows += (model.rows,)
    return rows


def _written(model: Model, state: State, driver: Driver) -> tuple[tuple[int, ...], Counts]:
    """Return what goes into the output: the rows of the batch, or the total with them."""
    rows = () if model.static else _output(model, state, driver)
    if not model.keyed:
        return rows, ()
    before = dict(own(model, state, driver).states).get(driver.batch, (0,) * (model.rows + 1))
    return (), counted(before, rows)


def _closed(model: Model, folder: Folder, version: int) -> bool:
    counts = dict(folder.states).get(version)
    return counts is not None and counts[model.rows] > 0


def _with_state(model: Model, state: State, number: int, then: Driver) -> State:
    """Add the next version. One that exists stays, as a snapshot that was left behind does."""
    folder, batch = own(model, state, then), then.batch
    versions = dict(folder.states)
    if batch + 1 not in versions:
        before = versions.get(batch, (0,) * (model.rows + 1))
        version = (batch + 1, counted(before, _output(model, state, then)))
        folder = folder._replace(states=(*folder.states, version))
    return filed(model, state, number, then, folder)


def _rows(model: Model, driver: Driver) -> str:
    if driver.end > model.rows:
        return "no rows, windows close"
    rows = range(driver.start, driver.end)
    return f"rows {' '.join(map(str, rows))}" if rows else "no rows"
