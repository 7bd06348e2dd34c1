"""Which line of the runtime each mutant of the model leaves out, and which test misses it.

A guard that the model has and the runtime has not is a promise that nothing keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SEQUENCES = "tests/faults/sequences/test_sequences.py::test_without_a_fix_some_sequence_fails"
"""Plays random sequences without the guard; see there."""
_HERE = "tests/faults/model/test_guards.py::"
_BEGIN = "packages/ytstream/tests/query/test_where_a_batch_begins.py::"
_OLDER = "packages/ytstream/tests/faults/test_older_drivers.py::"


class Guard(NamedTuple):
    """The part of the runtime that a mutant leaves out."""

    function: str
    """The function that is the guard, or has it."""
    twin: str
    """Takes it out of the runtime; of tests/support/without_fix.py."""
    test: str = SEQUENCES
    """Plays the twin."""


GUARDS: Mapping[str, Guard] = {
    "no_epoch": Guard("ytstream.recovery.epoch.raise_epoch", "raise_no_epoch_before_the_start"),
    "shared_folder": Guard("ytstream.recovery.checkpoint_repair.path_of", "keep_one_folder"),
    "cached_check": Guard("ytstream.query.batch.verify_head", "remember_the_head"),
    "no_check": Guard("ytstream.query.batch.verify_head", "verify_no_head"),
    "head_outside": Guard(
        "ytstream.ledger.batch_commit.write_head",
        "write_the_head_apart",
        f"{_OLDER}test_a_commit_is_applied_after_recovery",
    ),
    "begin_unchecked": Guard("ytstream.recovery.epoch.verify_epoch", "begin_in_any_epoch"),
    "number_alone": Guard(
        "ytstream.recovery.epoch.verify_epoch",
        "tell_epochs_by_number",
        "packages/ytstream/tests/recovery/test_epoch.py::test_a_foreign_epoch_ends_the_process",
    ),
    "no_repair": Guard("ytstream.recovery.checkpoint_repair._repair", "repair_no_folder"),
    "planned_again": Guard(
        "ytstream.recovery.checkpoint_repair._fits",
        "plan_again",
        "packages/ytstream/tests/recovery/test_checkpoint_repair.py::test_a_planned_batch_stays_if_it_ends_behind_the_ledgers",
    ),
    "planned_behind": Guard("ytstream.recovery.checkpoint_repair._fits", "plan_behind_the_head"),
    "consumer_unchecked": Guard("ytstream.query.batch.verify_head", "verify_no_consumer"),
    "no_watch": Guard(
        "ytstream.query.stall_watchdog.Watchdog._verify",
        "watch_no_consumer",
        "packages/ytstream/tests/query/test_stall_watchdog.py::test_a_consumer_that_something_else_moved_ends_it",
    ),
    "no_put_back": Guard(
        "ytstream.query.stall_watchdog.Watchdog._put_back",
        "put_no_consumer_back",
        "packages/ytstream/tests/query/test_stall_watchdog.py::test_a_consumer_that_is_behind_is_put_back",
    ),
    "checked_late": Guard(
        "ytstream.query.batch.Batch._is_undone_whole",
        "verify_after_the_state",
        f"{_HERE}test_a_job_with_state_is_verified_before_it_is_written",
    ),
    "start_unchecked": Guard(
        "ytstream.query.offset_check.verify_start",
        "verify_no_start",
        f"{_BEGIN}test_an_older_driver_moves_the_consumer_back",
    ),
    "keyed_replaying": Guard(
        "ytstream.declaration.compatibility.problem",
        "admit_any_pair",
        f"{_HERE}test_a_total_needs_the_transaction",
    ),
    "late_total": Guard(
        "ytstream.declaration.compatibility.problem",
        "admit_any_pair",
        f"{_HERE}test_a_total_needs_the_transaction",
    ),
    "published_early": Guard(
        "ytstream.outputs.static_outputs.StaticTables.publish", "publish_before_the_batch"
    ),
    "removed_early": Guard("ytstream.recovery.start.claim", "remove_before_the_epoch"),
    "removed_newer": Guard(
        "ytstream.outputs.static_outputs.StaticTables.settle", "remove_of_newer_epochs"
    ),
    "nothing_removed": Guard("ytstream.staging.staged_tables.named", "publish_orphans"),
}
