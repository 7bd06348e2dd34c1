"""The memory of an executor whose state is in RocksDB."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.examples import example, settings_of
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import conf_values
from ytstream.settings.job_settings import MEMORY
from ytstream.settings.resources import executor_overhead, sizes_of
from ytstream.settings.spark_conf import EXECUTOR_OVERHEAD, STATE_MEMORY

JOB = example("transactional", "aggregate").job
SETTINGS = settings_of(JOB, "//home/job")


@pytest.mark.parametrize(
    ("spark", "words", "overhead", "limit"),
    [
        ({}, (), "910", "5006 MiB"),  # a tenth of 4 GiB, and 500 MiB
        ({}, ("--executor-memory", "1g"), "884", "1908 MiB"),  # Spark's least, and 500 MiB
        ({STATE_MEMORY: 2_000}, (), "2410", "6506 MiB"),
        ({EXECUTOR_OVERHEAD: "1g"}, (), "1g", "5120 MiB"),
        ({EXECUTOR_OVERHEAD: 700}, (), "700", "4796 MiB"),
    ],
)
def test_an_executor_has_memory_for_rocksdb_outside_its_heap(
    spark: dict[str, Any], words: tuple[str, ...], overhead: str, limit: str
) -> None:
    settings = replace(SETTINGS, spark=spark)
    sizes = sizes_of(settings, words)
    assert executor_overhead(settings, sizes) == overhead
    assert sizes.limit("executor", overhead) == limit


@pytest.mark.parametrize(
    "spark", [{STATE_MEMORY: "much"}, {STATE_MEMORY: 0}, {EXECUTOR_OVERHEAD: "10%"}]
)
def test_a_text_that_is_not_an_amount_is_an_error_of_the_configuration(
    spark: dict[str, Any],
) -> None:
    settings = replace(SETTINGS, spark=spark)
    with pytest.raises(JobError) as error:
        executor_overhead(settings, sizes_of(settings))
    assert error.value.code is ErrorCode.CONFIG


def test_a_state_in_memory_needs_nothing_more() -> None:
    values = conf_values(replace(SETTINGS, state_store=MEMORY), JOB)
    assert (values["executor_overhead"], values["state_memory_mib"]) == (None, None)
    stateless = example("transactional", "map").job
    assert conf_values(SETTINGS, stateless)["executor_overhead"] is None
