"""A sample of the tests under each other Spark, in the environment of `make setup-all`."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.sparks import OTHERS

FOLDER = Path(__file__).parents[2]
"""The folder of all packages."""
ROOT = FOLDER.parent
PATIENCE_SECONDS = 900

SAMPLE = (
    "ytstream/tests/connector/test_connector.py::test_both_write_equal_tables_of_random_values",
    "ytstream/tests/connector/test_json_of.py::test_a_job_reads_json_of_its_column_everywhere[own]",
    "ytstream/tests/faults/test_fixes_stateful.py::test_the_commits_reply_is_lost[window-fixed]",
    "ytstream/tests/faults/test_fixes_replaying.py::test_rows_trimmed_before_they_were_read[at_least_once-fixed]",
    "ytstream/tests/guarantees/test_one_to_one.py::test_a_plan_that_is_one_to_one_passes[2]",
    "ytstream/tests/guarantees/test_one_to_one.py::test_a_subquery_over_a_stream_is_refused",
    "ytstream/tests/schema/test_types.py::test_every_type_comes_out_as_it_went_in[window]",
    "ytstream/tests/declaration/test_user_errors.py::test_what_needs_spark_at_an_import_is_refused_with_the_way_to_do_without[decorator]",
    "ytstream/tests/query/test_where_a_batch_begins.py::test_an_older_driver_moves_the_consumer_back[static-fixed]",
    "ytstream/tests/query/test_stall_watchdog.py::test_a_task_that_finishes_is_seen",
    "ytstream/tests/query/test_lookup.py::test_operators_over_a_lookup[keys]",
    "ytstream/tests/rejected/test_rejected_rows.py::test_values_of_every_type_come_back_from_a_rejected_row",
    "ytstream/tests/declaration/test_checked_state.py::test_a_state_function_that_nothing_checks_is_refused",
    "ytstream/tests/rejected/test_limit.py::test_both_readings_take_the_batchs_time[fixed]",
    "ytstream/tests/rejected/test_limit.py::test_a_text_that_becomes_another_time_in_each_reading_is_refused",
    "ytstream/tests/outputs/test_column_values.py::test_a_column_is_computed_once",
    "ytstream/tests/outputs/test_column_values.py::test_the_message_names_the_output_the_column_and_a_row[streamed]",
)
"""A fix with state and one without, an older driver; the fence, types, plans, the second reading
and the compiled connector, which each Spark handles in its own way."""
MORE = (
    "ytstream/tests/connector/test_newest.py",
    "ytstream/tests/outputs/test_totals.py::test_a_sum_reaches_the_end_of_64_bits_and_a_batch_beyond_it_ends_the_job",
    "ytstream/tests/query/test_lookup.py",
    "ytstream/tests/query/test_lookup_moment.py",
    "ytstream/tests/connector/test_json_of.py::test_a_job_reads_json_of_its_column_everywhere[spyt]",
    "ytstream/tests/connector/test_json_of.py::test_a_text_of_the_raw_column_is_refused",
    "ytstream/tests/connector/test_json_of.py::test_a_job_that_calls_it_does_not_start_without_the_compiler",
    "ytstream/tests/rejected/test_limit.py::test_late_rows_of_few_groups_are_counted_each",
    "ytstream/tests/guarantees/test_one_to_one.py::test_a_refusal_that_can_be_accepted_says_how",
    "ytstream-tools/tests/submitting/test_submission.py::test_spark_submit_itself_takes_nothing_else_from_the_shell",
    "ytstream/tests/faults/test_retries.py::test_a_write_fails_once",
    "ytstream/tests/faults/test_fixes_replaying.py::test_an_idempotent_batch_that_runs_again_changes_nothing[1-fixed]",
    "ytstream/tests/query/test_end_to_end.py::test_every_row_arrives_once_and_right_over_two_runs[transactional-join-2]",
    "ytstream/tests/query/test_end_to_end.py::test_every_row_arrives_once_and_right_over_two_runs[transactional-map-1]",
    "ytstream/tests/faults/test_fixes_transactional.py::test_death_between_commit_log_and_transaction[fixed]",
    "ytstream/tests/faults/test_fixes_stateful.py::test_death_between_commit_log_and_transaction[sessions-fixed]",
    "ytstream/tests/recovery/test_added_queue.py::test_a_queue_comes_in_front_where_a_batch_was_planned",
    "ytstream/tests/faults/test_older_drivers.py::test_a_commit_is_applied_during_recovery[window]",
    "ytstream/tests/outputs/test_static_outputs.py::test_a_reader_sees_each_row_once_wherever_a_batch_fails[transactional]",
    "ytstream/tests/faults/test_late_writes.py::test_a_task_of_a_batch_that_has_failed_continues[transactional]",
    "ytstream/tests/spark/test_local_checkpoint.py::test_a_batch_asks_nothing_of_its_folder_on_cypress",
    "ytstream/tests/outputs/test_tablet_overflow.py::test_each_output_that_is_too_small_is_named",
    "ytstream/tests/cluster/test_mounting.py::test_a_running_job_outlives_the_unmount_of_a_table[transactional-output]",
    "ytstream/tests/faults/test_remounts.py::test_a_table_is_remounted_between_the_writes_and_the_commit[transactional-output-reshard-own]",
    "ytstream/tests/spark/test_jvm_process.py::test_a_process_ends_with_its_own_code_whatever_spark_does[spark-submit]",
    "ytstream/tests/rejected/test_limit.py::test_rows_three_hours_ahead_are_rejected_and_end_the_job[transactional-window-2]",
    "ytstream/tests/rejected/test_limit.py::test_late_rows_are_in_the_ledger_and_end_the_job[at_least_once-deduplicate]",
    "ytstream/tests/query/test_idle_signal.py::test_a_start_that_finds_nothing_says_so_once",
    "ytstream/tests/connector/test_spyt_source.py",
    "ytstream/tests/spark/test_state_in_rocksdb.py::test_the_ledger_counts_the_keys_of_a_state_as_spark_does",
)
"""A kill and a late commit with state, a queue that comes to a state, an older driver, a checkpoint
on the disk, a maintenance, a long batch, a Spark that hangs."""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "names", [SAMPLE, pytest.param(MORE, marks=pytest.mark.journey)], ids=["sample", "more"]
)
@pytest.mark.parametrize("spark", OTHERS)
def test_it_passes(environments: dict[str, Path], names: tuple[str, ...], spark: str) -> None:
    done = subprocess.run(
        [
            *(environments[spark] / "bin/python", "-m", "pytest", "-q"),
            # The template's own conftest needs packages that this environment does not have.
            *("--confcutdir", FOLDER / "ytstream/tests", "-p", "tests.support.fixtures"),
            "-p",
            "no:cacheprovider",
            *(FOLDER / name for name in names),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    # A name with parameters is several tests.
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout[-20_000:]
    assert int(passed[1]) >= len(names), done.stdout[-20_000:]
    assert "skipped" not in done.stdout, done.stdout[-20_000:]
