"""Cores and memory of driver and executors: each from the one place that gives it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from .job_settings import Settings
from .spark_conf import EXECUTOR_OVERHEAD, SIZES, STATE_MEMORY
from .submit_section import MEMORY

_DRIVERS_PART, _EXECUTORS_PART, _LEAST_MIB = 0.4, 0.1, 384
"""Spark adds this part of the memory to a process' limit, and at least so many MiB; the driver of a
Python job gets more (YTsaurusOperationManager, NON_JVM_MEMORY_OVERHEAD_FACTOR)."""
_STATE_MIB = 500
"""What the states of an executor share in RocksDB if [spark] does not say (Spark, RocksDBConf)."""
_MEMORY = ('an amount of memory such as "4g" or "1500m"', MEMORY)
_COUNT = ("a whole number from 1", re.compile(r"[1-9]\d{0,3}"))
_MIB = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}
_WORDS = {
    "--driver-cores": "driver_cores",
    "--driver-memory": "driver_memory",
    "--num-executors": "executors",
    "--executor-cores": "executor_cores",
    "--executor-memory": "executor_memory",
}
"""The words of spark-submit that set one of the sizes."""


class SourcedValue(NamedTuple):
    """A value, and where it is given."""

    value: str
    where: str


@dataclass(frozen=True)
class Resources:
    """The sizes of what is started, by the names that they have under [submit]."""

    given: Mapping[str, SourcedValue]

    def __getitem__(self, name: str) -> str:
        return self.given[name].value

    @property
    def executors(self) -> int:
        """How many executors are started."""
        return int(self["executors"])

    @property
    def confs(self) -> dict[str, str]:
        """The settings of Spark."""
        return {size.key: self[size.name] for size in SIZES}

    def limit(self, of: str, overhead: str | None = None) -> str:
        """Return the memory of a process with what Spark adds, as YTsaurus limits it."""
        mib = _mib(self[f"{of}_memory"])
        part = _DRIVERS_PART if of == "driver" else _EXECUTORS_PART
        more = _overhead(mib, part) if overhead is None else _mib(overhead)
        return f"{round(mib + more)} MiB"


def state_memory_mib(settings: Settings) -> int:
    """Return how much memory outside the heap RocksDB may take in each executor.

    Raises JobError for a value under [spark] that is not a whole number.
    """
    given = settings.spark_confs.get(STATE_MEMORY, str(_STATE_MIB))
    if re.fullmatch(r"[1-9]\d{0,6}", given) is None:
        raise JobError(
            f"[spark] {STATE_MEMORY} = {given!r}: wanted a whole number of MiB",
            "correct it; nothing was started",
            code=ErrorCode.CONFIG,
        )
    return int(given)


def executor_overhead(settings: Settings, sizes: Resources) -> str:
    """Return the memory outside the heap of an executor whose state is in RocksDB, in MiB.

    What [spark] says wins. Raises JobError as state_memory_mib() does.
    """
    if (given := settings.spark_confs.get(EXECUTOR_OVERHEAD)) is not None:
        if MEMORY.fullmatch(given) is None and not given.isdecimal():
            raise JobError(
                f"[spark] {EXECUTOR_OVERHEAD} = {given!r}: wanted {_MEMORY[0]}, or MiB as a number",
                "correct it; nothing was started",
                code=ErrorCode.CONFIG,
            )
        return given
    mib = _mib(sizes["executor_memory"])
    return str(round(_overhead(mib, _EXECUTORS_PART)) + state_memory_mib(settings))


def _mib(memory: str) -> float:
    """Return an amount in MiB; one without a unit is in MiB already, as Spark reads it."""
    found = MEMORY.fullmatch(memory)
    return int(found[1]) * _MIB[found[2].lower()] if found is not None else float(memory)


def _overhead(mib: float, part: float) -> float:
    return max(part * mib, _LEAST_MIB)


def sizes_of(settings: Settings, words: Sequence[str] = ()) -> Resources:
    """Return the sizes; a word for spark-submit wins over the configuration, as it does there.

    Raises JobError for a text that is not a size.
    """
    by_word = {
        _WORDS[name]: SourcedValue(value, name) for name, value in pairwise(words) if name in _WORDS
    }
    found: dict[str, SourcedValue] = {}
    for size in SIZES:
        own = getattr(settings.submit, size.name)
        if size.name in by_word:
            found[size.name] = by_word[size.name]
        elif own is not None:
            found[size.name] = SourcedValue(str(own), f"[submit] {size.name}")
        elif size.key in settings.spark_confs:
            found[size.name] = SourcedValue(settings.spark_confs[size.key], f"[spark] {size.key}")
        else:
            found[size.name] = SourcedValue(size.default, "the default")
    problems = [
        f"{of.where} = {of.value!r}: wanted {wanted}"
        for name, of in found.items()
        for wanted, pattern in [_MEMORY if name.endswith("_memory") else _COUNT]
        if pattern.fullmatch(of.value) is None
    ]
    if problems:
        raise JobError(
            "\n".join(problems), "correct it; nothing was started", code=ErrorCode.CONFIG
        )
    return Resources(found)
