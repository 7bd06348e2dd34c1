"""Patches of the runtime, each of which takes one fix out, and the tests that are red without it.

A test that takes the fix out itself proves only that its own patch does harm. These patches change
the source as a careless commit would, and `make proof MUTANTS=1` runs the named tests on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_RUNTIME = "packages/ytstream/src/ytstream"
_TESTS = "packages/ytstream/tests"
SEQUENCES = (
    "tests/faults/sequences/test_sequences.py::"
    "test_whatever_happens_each_row_is_counted_as_promised"
)
"""Random sequences of what happens to a job, on the runtime as it is."""
_HARD = "tests/faults/sequences/test_sequences.py::test_without_a_fix_some_sequence_fails"
"""Histories in which only one fix helps."""
_FAULTS = f"{_TESTS}/faults"
_RECOVERY = f"{_TESTS}/recovery"
_QUERY = f"{_TESTS}/query"
_CONNECTOR = f"{_TESTS}/connector"
_VALUES = f"{_CONNECTOR}/test_connector.py::test_both_write_equal_tables_of_random_values"
"""Random values of every type, through both connectors."""
_REPEATED = (
    f"{_CONNECTOR}/test_connector.py::test_a_batch_happens_once_where_one_of_several_requests_fails"
)
"""A request of a batch fails, and the batch is repeated."""
_BLOCK = (
    f"{_CONNECTOR}/test_connector.py::test_all_requests_of_a_task_are_sent_again_where_one_fails"
)
"""A block of rows is sent again."""


class Edit(NamedTuple):
    """One change of a source file."""

    path: str
    old: str
    """Stands in the file exactly once."""
    new: str


class Mutant(NamedTuple):
    """The runtime without one fix."""

    name: str
    """What it no longer does, in words. Rows of docs/proof.md have the same words."""
    edits: Sequence[Edit]
    tests: Sequence[str]
    """At least one of them is red: ids for pytest."""


def applied(edit: Edit, source: str) -> str:
    """Return the source with the edit. Raises ValueError where its text does not stand once."""
    if (count := source.count(edit.old)) != 1:
        raise ValueError(f"{edit.path} has this text {count} times:\n{edit.old}")
    return source.replace(edit.old, edit.new)


def _of(file: str, old: str, new: str) -> Edit:
    return Edit(f"{_RUNTIME}/{file}", old, new)


def _mutant(name: str, edits: Edit | Sequence[Edit], *tests: str) -> Mutant:
    return Mutant(name, [edits] if isinstance(edits, Edit) else edits, tests)


_MY_EPOCH = (
    "        head = epoch.verify_epoch(positions.read_head(settings.ledger, "
    "transaction.select), mine)\n"
)
_ANY_EPOCH = (
    "        found = positions.read_head(settings.ledger, transaction.select)\n"
    "        head = replace(found or Head(), epoch=mine.number, owner=mine.owner)\n"
)
_EPOCH_IN_BATCH = _of(
    "query/batch.py",
    "    head = verify_epoch(read_head(settings.ledger, select), mine)\n",
    "    head = read_head(settings.ledger, select)\n    assert head is not None\n",
)
_NEXT_BATCH = _of(
    "query/batch.py",
    "    if (head.folder, head.batch) != (mine.number, number - 1):\n",
    "    if False:\n",
)
_CONSUMER_IN_BATCH = _of(
    "query/batch.py",
    "    if context.guarantee.in_transaction:\n        found",
    "    if False:\n        found",
)
_FIRST_ROW = _of(
    "query/batch.py", "        verify_start(batch.name, planned, reads(batch.plan))\n", ""
)

LEDGER: Sequence[Mutant] = (
    _mutant(
        "no epoch is raised before a start",
        [
            _of(
                "recovery/epoch.py",
                "                transaction.modify(path, ledger_rows.COLUMNS, rows)\n",
                "",
            ),
            _of(
                "recovery/start.py",
                _MY_EPOCH,
                _ANY_EPOCH,
            ),
        ],
        SEQUENCES,
        f"{_HARD}[raise_no_epoch_before_the_start]",
    ),
    _mutant(
        "one folder for all epochs",
        _of(
            "recovery/checkpoint_repair.py",
            '    return f"{settings.checkpoint}/{epoch}"\n',
            '    return f"{settings.checkpoint}/1"\n',
        ),
        SEQUENCES,
    ),
    _mutant(
        "the head is not read in the batch",
        [_EPOCH_IN_BATCH, _NEXT_BATCH, _CONSUMER_IN_BATCH, _FIRST_ROW],
        f"{_QUERY}/test_batch.py::test_the_consumer_is_moved_forward",
        f"{_FAULTS}/test_older_drivers.py",
    ),
    _mutant(
        "the head is read in the first batch of a query and then remembered",
        _of(
            "query/batch.py",
            "    head = verify_epoch(read_head(settings.ledger, select), mine)\n",
            '    known = verify_head.__dict__.setdefault("known", set())\n'
            "    if mine in known and (head := read_head(settings.ledger, select)) is not None:\n"
            "        return head\n"
            "    known.add(mine)\n"
            "    head = verify_epoch(read_head(settings.ledger, select), mine)\n",
        ),
        SEQUENCES,
    ),
    _mutant(
        "the epoch is not verified in the batch",
        _EPOCH_IN_BATCH,
        f"{_FAULTS}/test_older_drivers.py::"
        "test_a_frozen_driver_comes_back_with_a_batch_that_has_happened",
    ),
    _mutant(
        "a batch may follow any other",
        _NEXT_BATCH,
        f"{_QUERY}/test_batch.py::test_only_the_next_batch_of_the_ledger_may_commit",
    ),
    _mutant(
        "the head is written after T, in a transaction of its own",
        _of(
            "query/batch.py",
            "            batch_commit.write_head(batch.transaction, path, after, done)\n",
            "            with self.tablets.transaction() as own:\n"
            "                batch_commit.write_head(own, path, after, done)\n",
        ),
        f"{_FAULTS}/test_older_drivers.py::test_a_commit_is_applied_after_recovery",
        f"{_FAULTS}/test_fixes_transactional.py",
    ),
    _mutant(
        "`begin` does not check the epoch",
        _of(
            "recovery/start.py",
            _MY_EPOCH,
            _ANY_EPOCH,
        ),
        SEQUENCES,
    ),
    _mutant(
        "an epoch is known as one's own by its number, not by its owner",
        _of(
            "recovery/epoch.py",
            "    if head is None or (head.epoch, head.owner) != (mine.number, mine.owner):\n",
            "    if head is None or head.epoch != mine.number:\n",
        ),
        f"{_RECOVERY}/test_epoch.py::test_a_foreign_epoch_ends_the_process",
    ),
    _mutant(
        "the commit log is copied as it is",
        _of(
            "recovery/checkpoint_repair.py",
            "    for number in commits:\n        if number > batch:\n",
            "    for number in commits:\n        if False:\n",
        ),
        f"{_RECOVERY}/test_checkpoint_repair.py",
    ),
    _mutant(
        "with state, a planned batch is removed and planned again",
        _of(
            "recovery/checkpoint_repair.py",
            "    if later and (is_moved or not _fits(client, path, later[0], [*rows.values()])):\n",
            "    if later:\n",
        ),
        f"{_RECOVERY}/test_checkpoint_repair.py::"
        "test_a_planned_batch_stays_if_it_ends_behind_the_ledgers",
    ),
    _mutant(
        "a planned batch is copied although it ends before the head",
        _of(
            "recovery/checkpoint_repair.py",
            "        end.get(partition, row) >= row\n",
            "        end.get(partition, row) is not None\n",
        ),
        f"{_HARD}[plan_behind_the_head]",
        f"{_RECOVERY}/test_checkpoint_repair.py",
    ),
    _mutant(
        "the consumer is not compared with the head in a batch",
        _CONSUMER_IN_BATCH,
        f"{_QUERY}/test_where_a_batch_begins.py::test_an_older_driver_moves_the_consumer_forward_without_spark",
        f"{_QUERY}/test_batch.py::test_the_consumer_is_moved_forward",
    ),
    _mutant(
        "an idle query's consumer is not compared with the head",
        _of(
            "query/stall_watchdog.py",
            "            self._verify(self.queues, head)\n",
            "",
        ),
        f"{_QUERY}/test_stall_watchdog.py::test_a_consumer_that_something_else_moved_ends_it",
    ),
    _mutant(
        "an idle query's consumer that an older driver has moved back stays there",
        _of(
            "query/stall_watchdog.py",
            "            self._put_back(queues, head)\n",
            "            pass\n",
        ),
        f"{_QUERY}/test_stall_watchdog.py::test_a_consumer_that_is_behind_is_put_back",
    ),
    _mutant(
        "with state, the head is verified after the state was written",
        _of(
            "query/batch.py",
            "context.guarantee.in_transaction and not context.job.kind.is_stateful\n",
            "context.guarantee.in_transaction\n",
        ),
        "tests/faults/model/test_guards.py::test_a_job_with_state_is_verified_before_it_is_written",
    ),
    _mutant(
        "a batch's first row is not compared with the head",
        _FIRST_ROW,
        f"{_QUERY}/test_where_a_batch_begins.py::test_an_older_driver_moves_the_consumer_back",
    ),
    _mutant(
        "a keyed output without the transaction",
        _of(
            "declaration/compatibility.py",
            '    reason = impossible["reasons"].get(processing)\n',
            "    reason = None\n",
        ),
        "tests/faults/model/test_guards.py::test_a_total_needs_the_transaction",
    ),
    _mutant(
        "a table is published before its batch happened",
        _of(
            "outputs/static_outputs.py",
            "            for table in [table for table in dict(self._written) "
            "if table.batch <= head.batch]:\n",
            "            for table in dict(self._written):\n",
        ),
        SEQUENCES,
        f"{_TESTS}/outputs/test_static_outputs.py",
    ),
    _mutant(
        "orphans are removed before the epoch is raised",
        _of(
            "recovery/start.py",
            "    decide(context, positions.read(context.client, context.settings))\n"
            "    return epoch",
            "    from ..outputs.static_outputs import StaticTables\n\n"
            "    every = replace(mine, number=1 << 62)\n"
            "    StaticTables(every).settle(context.client, context.settings)\n"
            "    decide(context, positions.read(context.client, context.settings))\n"
            "    return epoch",
        ),
        f"{_HARD}[remove_before_the_epoch]",
    ),
    _mutant(
        "the orphans of newer epochs are removed, too",
        _of(
            "outputs/static_outputs.py",
            "        orphans = {table for table in found if table.epoch < self.epoch.number}\n",
            "        orphans = {*found}\n",
        ),
        f"{_HARD}[remove_of_newer_epochs]",
    ),
    _mutant(
        "a start publishes orphans, too",
        _of(
            "staging/staged_tables.py",
            "    return {table: paths[table] for table in tables if table in paths}\n",
            "    return {\n"
            '        table: paths.get(table, f"{settings.outputs[table.output]}/{table.name}")\n'
            "        for table in tables\n"
            "    }\n",
        ),
        SEQUENCES,
        f"{_TESTS}/outputs/test_static_outputs.py",
    ),
    _mutant(
        "a batch that runs again finds the state that it has left",
        _of("recovery/checkpoint_repair.py", "    remove_states(client, path, batch + 1)\n", ""),
        f"{_RECOVERY}/test_checkpoint_repair.py::"
        "test_a_batch_that_runs_again_finds_no_state_of_its_own",
    ),
    _mutant(
        "the checkpoint stays as a lost reply to the commit has left it",
        _of(
            "recovery/checkpoint_repair.py",
            "    if batch not in commits or not spark_logs.is_whole_commit(client, path, batch):\n",
            "    if False:\n",
        ),
        f"{_RECOVERY}/test_checkpoint_repair.py",
        f"{_FAULTS}/test_fixes_stateful.py::test_the_commits_reply_is_lost",
    ),
    _mutant(
        "a batch without rows is not in the head's transaction",
        _of(
            "query/batch.py",
            "        if batch.transaction is not None:\n"
            "            batch_commit.write_head(batch.transaction, path, after, done)\n",
            "        if batch.transaction is not None:\n"
            "            with self.tablets.transaction() as own:\n"
            "                batch_commit.write_head(own, path, after, done)\n",
        ),
        f"{_FAULTS}/test_fixes_stateful.py::test_a_batch_without_rows_whose_transaction_is_lost",
    ),
    _mutant(
        "nobody audits the rows that a batch reads",
        _of(
            "query/read_audit.py",
            "        if not wanted or seen == (wanted, sum(rows.sum for rows in "
            "partitions.values())):\n            continue\n",
            "        continue\n",
        ),
        f"{_QUERY}/test_batch.py::test_a_queue_is_trimmed_while_a_batch_reads_it",
    ),
    _mutant(
        "a start does not ask for a queue's first rows",
        _of(
            "recovery/start.py",
            "            if row < lower:\n",
            "            if False:\n",
        ),
        SEQUENCES,
        f"{_FAULTS}/test_fixes_replaying.py::test_rows_trimmed_before_they_were_read",
    ),
    _mutant(
        "a start leaves the consumer where it is",
        _of(
            "recovery/start.py",
            "                if (old := queue.consumed.get(partition, 0)) != row:\n",
            "                if (old := queue.consumed.get(partition, 0)) != row and False:\n",
        ),
        f"{_QUERY}/test_batch.py::test_the_consumer_is_moved_back",
    ),
    _mutant(
        "an idempotent output has no key",
        _of(
            "guarantees/idempotent.py",
            "        return (*((QUEUE_KEY,) if queues > 1 else ()), *self.position)\n",
            "        return ()\n",
        ),
        f"{_TESTS}/guarantees",
    ),
    _mutant(
        "the sources of a checkpoint stay when queues are added",
        _of(
            "recovery/checkpoint_repair.py",
            "    has_others = queues != tuple(rows)\n",
            "    has_others = False\n    rows = {queue: rows.get(queue, {}) for queue in queues}\n",
        ),
        f"{_RECOVERY}/test_added_queue.py::test_a_queue_comes_in_front_where_a_batch_was_planned",
    ),
    _mutant(
        "rows that are skipped are not written down",
        _of(
            "recovery/start.py",
            "        moves = [ledger_rows.move_row(after.epoch, plan.move)] if plan.move else []\n",
            "        moves: list[ledger_rows.LedgerRow] = []\n",
        ),
        f"{_HARD}[tell_no_move]",
        f"{_TESTS}/ledger/test_moves.py",
    ),
    _mutant(
        "a second attempt of a task may write",
        _of(
            "guarantees/transactional.py",
            "        return rows.filter(FENCE)\n",
            "        return rows\n",
        ),
        f"{_QUERY}/test_pipeline.py::test_the_fence_stands_before_the_rows_of_transactional_alone",
        f"{_FAULTS}/test_retries.py",
    ),
)
"""What only the ledger, the start and the batch keep."""

CONNECTOR: Sequence[Mutant] = (
    _mutant(
        "the consumer stays where it is in the last partition",
        _of(
            "connector/jvm/Advance.java",
            "    CompletableFuture[] sent = new CompletableFuture[count];\n"
            "    for (int i = 0; i < count; i++) {\n",
            "    if (count > 1) count--;\n"
            "    CompletableFuture[] sent = new CompletableFuture[count];\n"
            "    for (int i = 0; i < count; i++) {\n",
        ),
        f"{_CONNECTOR}/test_requests.py::test_a_batch_makes_few_requests",
    ),
    _mutant(
        "the requests of a partition go to its neighbour",
        _of(
            "connector/jvm/Advance.java",
            "          .setNewOffset(to[i])\n",
            "          .setNewOffset(to[count - 1 - i])\n",
        ),
        f"{_CONNECTOR}/test_connector.py::test_each_partition_of_a_consumer_moves_to_its_own_row",
    ),
    _mutant(
        "an error of a write is ignored",
        _of(
            "connector/jvm/Flight.java",
            "    result((CompletableFuture) sent.poll());\n",
            "    try { result((CompletableFuture) sent.poll()); } catch (Exception ignored) { }\n",
        ),
        _REPEATED,
    ),
    _mutant(
        "a task ends before its writes have landed",
        _of(
            "connector/jvm/Output.java",
            "      flight.add(batch.modifyRows(request), request.bytes.length);\n    }\n"
            "    flight.land();\n",
            "      batch.modifyRows(request);\n    }\n",
        ),
        _REPEATED,
    ),
    _mutant(
        "a block that is sent again leaves its first request out",
        _of(
            "connector/jvm/Block.java",
            "          for (Object request : requests) sent((Rowset) request);\n",
            "          for (Object request : requests.subList(Math.min(1, requests.size() - 1), "
            "requests.size())) sent((Rowset) request);\n",
        ),
        _BLOCK,
    ),
    _mutant(
        "a block whose requests have failed is not sent again",
        _of(
            "connector/jvm/Block.java",
            "  private static final int ATTEMPTS = 3;\n",
            "  private static final int ATTEMPTS = 1;\n",
        ),
        _BLOCK,
    ),
    _mutant(
        "the columns of a rowset are taken by their place",
        _of(
            "connector/jvm/Columns.java",
            "      found[id] = ordinal == null ? -1 : ordinal.intValue();\n",
            "      found[id] = ordinal == null ? -1 : Math.min(id, count - 1);\n",
        ),
        _VALUES,
    ),
    _mutant(
        "rows that did not come are not missed",
        _of(
            "connector/jvm/RangeRows.java",
            "    if (rows == 0 || rows > end - next) {\n",
            "    if (false) {\n",
        ),
        _VALUES,
        _CONNECTOR,
    ),
    _mutant(
        "a range ends after its first reply",
        _of(
            "connector/jvm/RangeRows.java",
            "    next += rows;\n    askAhead();\n",
            "    next = end;\n    askAhead();\n",
        ),
        f"{_CONNECTOR}/test_connector.py::test_a_range_of_several_replies_is_read_whole",
    ),
    _mutant(
        "the rows of a request are counted one too few",
        _of(
            "connector/jvm/Encoder.java",
            "    wire.putLong(0, rows);\n",
            "    wire.putLong(0, rows > 1 ? rows - 1 : rows);\n",
        ),
        _VALUES,
    ),
    _mutant(
        "a null is written as zero",
        _of(
            "connector/jvm/Encoder.java",
            "        header(i, Wire.NULL, 0);\n        continue;\n",
            "        bits(i, Wire.INT64, 0);\n        continue;\n",
        ),
        _VALUES,
    ),
    _mutant(
        "the next range that was read ahead is that of its neighbour",
        _of(
            "connector/jvm/Ranges.java",
            "      RangeRows rows = ahead.closing(rows(next));\n",
            "      RangeRows rows = ahead.closing(rows(index));\n",
        ),
        _VALUES,
        f"{_CONNECTOR}/test_requests.py::test_a_batch_makes_few_requests",
        _CONNECTOR,
    ),
)
"""What the connector's classes do with rows, requests and the consumer."""

_TOTALS = f"{_TESTS}/outputs/test_totals.py"
_TABLES = f"{_RECOVERY}/test_totals.py"
TOTALS: Sequence[Mutant] = (
    _mutant(
        "a write to totals whose reply is lost is sent again in its transaction",
        _of(
            "connector/jvm/Output.java",
            "      flight.add(batch.modifyRows(request), request.bytes.length);\n"
            "    }\n"
            "    flight.land();\n",
            "      try {\n"
            "        Flight.result(batch.modifyRows(request));\n"
            "      } catch (Exception lost) {\n"
            "        Flight.result(batch.modifyRows(request));\n"
            "      }\n"
            "    }\n",
        ),
        f"{_TOTALS}::test_the_table_has_the_totals_of_all_batches",
    ),
    _mutant(
        "contributions have no flag: they replace the totals",
        _of(
            "connector/jvm/Wire.java",
            "AGGREGATE = 1L << 24;",
            "AGGREGATE = 0;",
        ),
        f"{_TOTALS}::test_the_table_has_the_totals_of_all_batches",
    ),
    _mutant(
        "a task writes a key once for each of its rows",
        _of(
            "connector/jvm/Totals.java",
            "      if (hashes[row] == hash && isOf(row, wire, begin, end)) return row;\n",
            "",
        ),
        f"{_TOTALS}::test_a_task_writes_a_key_once",
    ),
    _mutant(
        "a total may leave its 64 bits",
        _of("outputs/sum_bounds.py", "if not exact.is_within(ends[name]):", "if False:"),
        f"{_TOTALS}::test_a_sum_reaches_the_end_of_64_bits_and_a_batch_beyond_it_ends_the_job",
    ),
    _mutant(
        "SPYT's writer takes totals where the connector does not compile",
        _of("query/pipeline.py", "    _verify_connector(spark, context)\n", ""),
        f"{_TOTALS}::test_spyts_connector_does_not_take_over",
    ),
    _mutant(
        "a rewind back adds rows again",
        _of(
            "recovery/emptied_totals.py",
            "    may_repeat = is_back or (",
            "    may_repeat = False and (",
        ),
        f"{_TABLES}::test_a_rewind_back_is_refused",
    ),
    _mutant(
        "a start comes in between where totals are being emptied",
        _of("recovery/start.py", "        emptied_totals.verify_swapped(head)\n", ""),
        f"{_TABLES}::test_a_rewind_that_was_cut_off_is_repeated",
    ),
    _mutant(
        "a rewind takes the table of somebody else for its own",
        _of(
            "recovery/emptied_totals.py",
            'if not client.exists(f"{path}&")',
            "",
        ),
        f"{_TABLES}::test_tables_of_others_under_names_of_a_rewind_stay_and_totals_are_emptied",
    ),
    _mutant(
        "a rewind takes a table with rows for the empty one",
        _of("recovery/emptied_totals.py", "    _verify_empty(client, plan)\n", ""),
        f"{_TABLES}::test_a_table_that_came_to_the_path_in_between_must_be_empty",
    ),
    _mutant(
        "a job whose state becomes totals starts without `migrate`",
        _of(
            "ownership/job_marker.py",
            'if (was := head.marker.get("totals", [])) != (now := mine.get("totals", [])):',
            'if (was := head.marker.get("totals", [])) != (now := was):',
        ),
        f"{_TABLES}::test_a_job_with_other_totals_asks_for_migrate",
    ),
)
"""What keeps totals in a table exact (`aggregate=` in tables.py)."""

_SEALING = f"{_RUNTIME}/sealing/archive_tables.py"
_PIECES = f"{_RUNTIME}/staging/archive_pieces.py"
_PERIODS = f"{_RUNTIME}/schema/periods.py"
_ARCHIVES = f"{_TESTS}/sealing/test_archive_tables.py"
ARCHIVES: Sequence[Mutant] = (
    _mutant(
        "a table is made while a batch may still add to it",
        Edit(
            _SEALING,
            "closed = self._writing[1].get(output, 0) if self._writing else state.closed",
            "closed = state.closed",
        ),
        f"{_ARCHIVES}::test_a_batch_under_way_may_add_to_the_period_that_closes",
    ),
    _mutant(
        "a table does not depend on the job's lock",
        Edit(_SEALING, "lock = [self.lock()] if self.lock is not None else None", "lock = None"),
        f"{_ARCHIVES}::test_an_older_driver_makes_no_table",
    ),
    _mutant(
        "a table whose commit had no reply is not known again",
        Edit(
            _SEALING,
            "        if ids == [id_ for _, id_ in table.pieces]:\n            return True\n",
            "",
        ),
        f"{_ARCHIVES}::test_a_table_is_made_once_whatever_is_lost",
    ),
    _mutant(
        "pieces that no row names stay",
        Edit(
            _PIECES,
            "stay = [name for name, table in old.items() if table in forgotten]",
            "stay = [*old]",
        ),
        f"{_ARCHIVES}::test_a_start_removes_what_no_row_names",
    ),
    _mutant(
        "pieces that a lost ledger named go",
        Edit(
            _PIECES,
            "stay = [name for name, table in old.items() if table in forgotten]",
            "stay = list[str]()",
        ),
        f"{_ARCHIVES}::test_pieces_that_a_lost_ledger_named_stay_and_are_named",
    ),
    _mutant(
        "rows of other columns go into one table",
        Edit(
            _PERIODS,
            "return self.generation < generation or self.due <= closed",
            "return self.due <= closed",
        ),
        f"{_ARCHIVES}::test_other_columns_close_the_open_period",
    ),
    _mutant(
        "late rows come before their period's second table is due",
        Edit(
            _PERIODS,
            "due = end if end > closed else (closed // seconds + 1) * seconds",
            "due = end",
        ),
        f"{_ARCHIVES}::test_late_rows_are_a_table_of_their_own",
    ),
    _mutant(
        "a watermark closes periods by arrival",
        Edit(
            f"{_RUNTIME}/sealing/completeness.py",
            "is_watermark = has_watermark(job) and not as_written",
            "is_watermark = has_watermark(job)",
        ),
        f"{_TESTS}/sealing/test_completeness.py"
        "::test_a_job_with_state_has_a_watermark_under_a_name_of_its_own",
    ),
)
"""What keeps a table per period whole and shown once."""

_MERGE = f"{_TESTS}/outputs/test_merge.py"
_MERGED = "outputs/merged_rows.py"
_ORDER = f"{_MERGE}::test_the_newest_rows_stay_in_whatever_order_they_come"
MERGES: Sequence[Mutant] = (
    _mutant(
        "an older row replaces a newer one",
        _of(_MERGED, '    is_alive = "true"\n', '    is_new = is_alive = "true"\n'),
        _ORDER,
    ),
    _mutant(
        "an update wins over a delete of the same time",
        [
            _of(
                _MERGED,
                "ranked = [(_BY, by), (_IS_DELETE, flag)]",
                "ranked = [(_BY, by)]",
            ),
            _of(
                _MERGED,
                '    return "named_struct("',
                '    ranked.append((_IS_DELETE, flag))\n    return "named_struct("',
            ),
        ],
        _ORDER,
    ),
    _mutant(
        "a tie is decided by numbers with a sign",
        _of(_MERGED, "        if _is_unsigned(kind):\n", "        if not values:\n"),
        "packages/ytstream-tools/tests/testing/test_merged_outputs.py"
        "::test_a_tie_is_decided_by_unsigned_numbers",
    ),
    _mutant(
        "a tie of two zeros is decided by chance",
        _of(_MERGED, "        if kind.typeName() in _FLOATS:", "        if kind.typeName() in ():"),
        "packages/ytstream-tools/tests/testing/test_merged_outputs.py"
        "::test_two_zeros_are_decided_by_their_sign",
    ),
    _mutant(
        "numbers of the table are cut to the width of the batch's",
        _of(_MERGED, "    rows = widened(rows, columns)\n", ""),
        f"{_MERGE}::test_a_function_gets_numbers_of_the_table_that_no_row_could_have",
    ),
    _mutant(
        "deletes are not remembered",
        _of(
            "outputs/sink.py", "        if name in job.deletions:\n", "        if not job.merge:\n"
        ),
        _ORDER,
    ),
    _mutant(
        "a merge function may return two rows of a key",
        _of(_MERGED, "F.when(F.col(_RETURNED) > 1,", "F.when(F.col(_RETURNED) > 2,"),
        f"{_MERGE}::test_a_function_returns_one_row_of_each_key_that_it_gets",
    ),
    _mutant(
        "SPYT's writer takes rows of MERGE where the connector does not compile",
        _of(
            "query/pipeline.py",
            "    if context.job.merge and not connector.is_own:",
            "    if not connector.name:",
        ),
        f"{_MERGE}::test_spyts_connector_does_not_take_over",
    ),
)
"""What keeps rows that change exact (MERGE in transform.py)."""

_JVM = "connector/jvm"
_LOOKED_UP = (
    "tests/faults/sweep/test_lookups.py"
    "::test_all_rows_of_a_batch_are_as_of_the_moment_that_its_ledger_row_names[sample]"
)
"""Kills and faults of a job with lookups, while references change."""
LOOKUPS: Sequence[Mutant] = (
    _mutant(
        "each request of a batch looks up what is there at that time",
        _of(
            f"{_JVM}/Ask.java",
            "      draft.setTimestamp(YtTimestamp.valueOf(moment.timestamp));\n",
            "",
        ),
        _LOOKED_UP,
    ),
    _mutant(
        "requests for keys go through the link",
        _of(
            f"{_JVM}/Ask.java",
            'draft.setPath("#" + moment.table)',
            "draft.setPath(moment.path)",
        ),
        _LOOKED_UP,
    ),
    _mutant(
        "a batch uses a table that was built after it had begun",
        _of(
            f"{_JVM}/Moments.java",
            "if (earliest(found, spec) > timestamp) return",
            "if (timestamp < 0) return",
        ),
        _LOOKED_UP,
    ),
)
"""What keeps the rows of a batch as of one moment of its references."""

_KEPT = f"{_RUNTIME}/rejected/kept_late_rows.py"
_LATE = (
    "tests/faults/sweep/test_late.py"
    "::test_each_row_is_used_rejected_or_late_wherever_a_driver_is_killed[sample]"
)
LATE_ROWS: Sequence[Mutant] = (
    _mutant(
        "late rows are written outside of the batch's transaction",
        Edit(
            _KEPT,
            "        write(rows, REJECTED, context, tablets.java, number)\n",
            '        found = [{**row.asDict(), "time": 1} for row in rows.collect()]\n'
            "        context.client.insert_rows(context.settings.outputs[REJECTED], found)\n",
        ),
        _LATE,
    ),
    _mutant(
        "a late row counts once for each window that it has missed",
        Edit(
            _KEPT,
            "LateRows(count, watermark, newest)",
            "LateRows(drops or 0, watermark, newest)",
        ),
        _LATE,
    ),
)
"""What keeps late rows (late="reject" in job.py)."""

_ORACLE = "tests/faults/sweep/test_oracle.py"
JUDGE: Sequence[Mutant] = (
    _mutant(
        "rows that nobody expects are not counted as wrong",
        Edit(
            "tests/faults/sweep/oracle.py",
            "        wrong += sum(count for text, count in more.items() "
            "if text not in expected[name])\n",
            "",
        ),
        _ORACLE,
    ),
    _mutant(
        "rows that are lost are not counted",
        Edit("tests/faults/sweep/oracle.py", "        lost += missing.total()\n", ""),
        _ORACLE,
    ),
    _mutant(
        "rows that are there too often are not counted",
        Edit("tests/faults/sweep/oracle.py", "        repeated += more.total()\n", ""),
        _ORACLE,
    ),
    _mutant(
        "a rejected row may have other values than its row in the queue",
        Edit(
            "tests/faults/sweep/oracle.py",
            '    has_its_values = is_source(row["row"], source, times)\n',
            "    has_its_values = bool(source)\n",
        ),
        f"{_ORACLE}::test_a_rejected_row_has_the_values_of_its_queue",
    ),
    _mutant(
        "a case holds whatever its job needed to go on",
        Edit(
            "tests/faults/sweep/judging.py",
            'return replace(result, verdict=FAILED, said="; ".join(more)) if more else result',
            "return result",
        ),
        "tests/faults/sweep/test_control.py"
        "::test_a_case_with_more_than_its_fault_explains_is_not_held",
    ),
)
"""The verdict on a case itself."""

_CASE = "tests/faults/sweep/test_sample.py::test_a_case_of_a_mutant_is_held"
_WRITTEN = "            fenced = context.guarantee.fenced(observed_writes(frames[name], name))\n"


def _writing(rows: str, guarantee: str) -> Edit:
    """Return the writer of a job with this guarantee that writes other rows into "output"."""
    return _of(
        "outputs/sink.py",
        _WRITTEN,
        "            made = frames[name]\n"
        f'            if name == "output" and context.guarantee.name == "{guarantee}":\n'
        f"                made = {rows}\n"
        "            fenced = context.guarantee.fenced(observed_writes(made, name))\n",
    )


CASES: Sequence[Mutant] = (
    _mutant(
        "deduplicate drops no row",
        Edit(
            "templates/deduplicate/transform.py",
            'F.coalesce("event_id", F.expr("uuid()"))',
            'F.expr("uuid()")',
        ),
        f"{_CASE}[transactional-deduplicate-1:middle:CommitTransaction.ledger:killed-before]",
    ),
    _mutant(
        "MERGE skips a micro-batch",
        _of(
            "outputs/sink.py",
            "_merge(frames[name], name, context, java)",
            '_merge(frames[name].filter(f"{number} <> 1"), name, context, java)',
        ),
        f"{_CASE}[transactional-merge-1:middle:CommitTransaction.ledger:killed-before]",
    ),
    _mutant(
        "at_least_once doubles a row of each micro-batch",
        _writing("frames[name].union(frames[name].limit(1))", "at_least_once"),
        f"{_CASE}[at_least_once-map-1:middle:StartTransaction.tablet:killed-before]",
    ),
    _mutant(
        "a rejected row has its time without microseconds",
        _of(
            "outputs/row_json.py",
            """TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\"""",
            """TIME = "yyyy-MM-dd'T'HH:mm:ss.SSS'000'XXX\"""",
        ),
        f"{_CASE}[transactional-map-1:middle:CommitTransaction.ledger:killed-before]",
    ),
    _mutant(
        "a row of an idempotent job is at another position",
        _writing('frames[name].withColumn("row_index", F.expr("row_index + 1000"))', "idempotent"),
        f"{_CASE}[idempotent-map-1:middle:CommitTransaction.ledger:killed-before]",
    ),
)
"""Cases of the proof that are red: how sharp its oracle is."""

MUTANTS: Sequence[Mutant] = (
    *LEDGER,
    *CONNECTOR,
    *TOTALS,
    *MERGES,
    *ARCHIVES,
    *LOOKUPS,
    *LATE_ROWS,
    *JUDGE,
    *CASES,
)
