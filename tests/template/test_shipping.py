"""What a submit has to get right on a cluster, and the tests that show it.

A line for each fact of SPYT's direct submit that a job could break on, in the order in which they
were found in a trial of SPYT 2.11.2.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import NamedTuple

import pytest

from tests.support.project import ROOT

SUBMIT = "packages/ytstream-tools/tests/submitting/test_submission.py"
OPERATIONS = "tests/faults/operations/test_operations.py"
LEAVING = "packages/ytstream/tests/spark/test_jvm_process.py"
RELEASE = "packages/minicluster/tests/release/test_publish.py"

SAMPLE = f"{OPERATIONS}::test_an_executor_is_preempted_in_a_batch_and_jobs_hold_what_was_shipped"
TO_THE_END = f"{OPERATIONS}::test_a_job_reads_its_queues_to_the_end"
FAULTS = f"{OPERATIONS}::test_no_fault_breaks_the_guarantee"
IMPORT = (
    f"{OPERATIONS}::test_a_driver_whose_import_fails_on_the_node_ends_the_submit_with_its_stderr"
)
COMMAND = f"{SUBMIT}::test_the_command_is_detached_and_holds_no_token"
SHELL = f"{SUBMIT}::test_nothing_of_the_shell_leaks_into_the_job"
REAL = f"{SUBMIT}::test_spark_submit_itself_takes_nothing_else_from_the_shell"


class Fact(NamedTuple):
    """A fact, the tests that show that a job copes with it, and what no test can show."""

    what: str
    tests: tuple[str, ...]
    untested: str = ""


FACTS = (
    Fact(
        "in a job the token is in YT_SECURE_VAULT_YT_TOKEN alone",
        (SAMPLE, f"{LEAVING}::test_a_driver_as_on_a_cluster_commits_and_stops"),
    ),
    Fact(
        "the driver's Python is spark.pyspark.python, else the node's; Java is /opt/jdk and the "
        "number of the submitter's",
        (COMMAND, TO_THE_END),
        "a submitter with another Java than the nodes: `java` under [submit] is for it",
    ),
    Fact(
        "failures count over the operation's life, restarts follow at once, aborts do not count",
        (
            f"{SUBMIT}::test_the_pause_grows_and_failures_of_a_year_do_not_add_up",
            f"{SUBMIT}::test_too_many_failures_within_an_hour_end_the_operation",
            FAULTS,
        ),
    ),
    Fact(
        "SPYT's wrapper makes every exit code of Python a 1",
        (
            f"{SUBMIT}::test_a_superseded_driver_ends_its_own_operation",
            f"{SUBMIT}::test_a_job_that_ends_itself_gives_its_reason",
            FAULTS,
            IMPORT,
        ),
    ),
    Fact(
        "executors of a restarted driver take its files again, by default below //tmp",
        (COMMAND, FAULTS),
        "a cleaner of //tmp: the minicluster has none; the files are elsewhere",
    ),
    Fact(
        "spark-submit watches the operation unless it is told not to",
        (COMMAND, f"{SUBMIT}::test_an_interrupted_submit_says_what_runs"),
    ),
    Fact(
        "an alias is unique while its operation runs; the id is written to a file if asked for",
        (
            f"{SUBMIT}::test_a_job_that_runs_is_not_started_again",
            f"{SUBMIT}::test_an_alias_of_another_job_is_named",
            SAMPLE,
        ),
    ),
    Fact("every SPARK_* of the submitter becomes a public setting", (SHELL, REAL)),
    Fact(
        "without the global configuration or the distribution spark-submit ends in a trace",
        (
            f"{SUBMIT}::test_what_the_cluster_lacks_is_named_before_anything_is_uploaded",
            REAL,
        ),
    ),
    Fact(
        "driver and executors have sizes by default",
        (f"{SUBMIT}::test_what_is_started_is_shown_with_its_limits",),
        "that YTsaurus ends a job over its limit of memory: the minicluster enforces none",
    ),
    Fact(
        "what Python a node has, and with which packages, is the cluster's affair",
        (
            f"{SUBMIT}::test_a_python_that_does_not_do_is_named",
            f"{SUBMIT}::test_a_python_that_is_not_there_ends_the_operation",
            f"{RELEASE}::test_a_node_has_what_spyt_needs_and_nothing_of_this_environment",
            TO_THE_END,
        ),
    ),
    Fact(
        "YT_PROXY does not reach the job: the shipped file's proxy decides",
        (f"{SUBMIT}::test_the_shipped_configuration_is_resolved", SAMPLE),
    ),
    Fact("SPYT turns annotations that are settings into numbers and lists", (COMMAND,)),
    Fact(
        "settings that match the redaction pattern travel in the vault; SPARK_CONF_DIR has it",
        (SHELL, REAL),
    ),
    Fact(
        "--py-files and --files become ./name; local --archives are new in SPYT 2.11",
        (SAMPLE, TO_THE_END, f"{SUBMIT}::test_files_of_a_person_go_beside_the_jobs_own"),
    ),
    Fact(
        "YTsaurus keeps a job's stderr alone, its first and its last half",
        (
            COMMAND,
            f"{SUBMIT}::test_logs_show_the_newest_attempt_and_the_executors",
            f"{SUBMIT}::test_added_lines_survive_a_cut_in_the_middle",
        ),
        "access rights and images of containers: the minicluster refuses images by name",
    ),
    Fact(
        "ports are looked for from 27001 upwards",
        (FAULTS,),
        "firewalls between nodes: all jobs of the minicluster share one machine, which makes two "
        "drivers and several executors meet at these ports",
    ),
    Fact(
        "executors whose operation was completed let the driver end as a success",
        (FAULTS,),
    ),
)


@cache
def _tests_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.what[:40])
def test_the_tests_of_a_fact_exist(fact: Fact) -> None:
    assert fact.tests
    for named in fact.tests:
        file, _, name = named.partition("::")
        assert name in _tests_of(file), named
