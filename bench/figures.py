"""What the stored runs of a case say: medians, quartiles, and each way compared with the base."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from bench.cases import JOB, LOOKUPS, TITLES, Case
from bench.request_kinds import MASTER, TABLETS
from ytstream.settings.job_settings import Settings

PARTS = {
    "jvm": "driver JVM",
    "python": "Python driver",
    "workers": "Python workers",
    "minicluster": "minicluster",
}
"""The parts of a way's processor seconds, and how people read them."""
OWN = ("jvm", "python", "workers")
"""Those of the job itself."""
_MILLION = 1_000_000
_KEYS_OF_A_REQUEST = 2_000
"""Of a LookupRows, at most: see Looked.java."""


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of some values; of one, the same three times."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        return cls(*statistics.quantiles(values, n=4, method="inclusive"))

    def text(self, shown: str = "{:.2f}") -> str:
        """Return the median, and the quartiles in brackets."""
        low, middle, high = map(shown.format, (self.low, self.middle, self.high))
        return f"{middle} ({low} to {high})"


@dataclass(frozen=True)
class Way:
    """The figures of one way of a case."""

    name: str
    rates: Sequence[float]
    """Rows per second of each round."""
    processor: Mapping[str, Sequence[float]]
    """Processor seconds per million rows of each round, by part."""
    requests: Mapping[str, Mapping[str, float]]
    """Requests of a batch by kind and method, the mean over all batches."""
    seconds: Sequence[float]
    """Of every batch."""
    idle: Mapping[str, float] | None
    """Requests per second while nothing came, by kind; None where that was not measured."""
    behind: int | None
    """Rows that the consumer was behind, a trigger after the last batch; None without a consumer.
    """
    keys: int
    """Rows of the state after the last batch."""
    heap: Sequence[float]
    """MiB of the driver's heap after each round, once it was collected; none where that was not
    measured."""

    @property
    def title(self) -> str:
        """The name that people read."""
        return TITLES.get(self.name, self.name)

    @property
    def own(self) -> list[float]:
        """Processor seconds per million rows of each round, without the minicluster's."""
        return [sum(parts) for parts in zip(*(self.processor[part] for part in OWN), strict=True)]

    def asked(self, *kinds: str) -> float:
        """Return the requests of a batch, of these kinds or of all."""
        return sum(sum(self.requests[kind].values()) for kind in kinds or self.requests)

    @property
    def p50(self) -> float:
        """The median of a batch's seconds."""
        return statistics.median(self.seconds)

    @property
    def p95(self) -> float:
        """Of twenty batches, nineteen took less."""
        if len(self.seconds) == 1:
            return self.seconds[0]
        return statistics.quantiles(self.seconds, n=20, method="inclusive")[-1]


def ways(found: Mapping[str, Any]) -> dict[str, Way]:
    """Return the figures of each way out of what is stored of a case; the base is the first."""
    return {name: _way(name, found) for name in found["ways"]}


def _way(name: str, found: Mapping[str, Any]) -> Way:
    runs = [figures["ways"][name] for figures in found["rounds"]]
    batches = sum(len(run["seconds"]) for run in runs)
    requests = {}
    for kind in (MASTER, TABLETS):
        counts = sum((Counter(run["requests"][kind]) for run in runs), Counter[str]())
        requests[kind] = {method: count / batches for method, count in sorted(counts.items())}
    idle = found["idle"].get(name)
    return Way(
        name,
        [run["rows"] / sum(run["seconds"]) for run in runs],
        {part: [run["processor"][part] / run["rows"] * _MILLION for run in runs] for part in PARTS},
        requests,
        [*chain(*(run["seconds"] for run in runs))],
        idle
        and {k: sum(asked.values()) / idle["seconds"] for k, asked in idle["requests"].items()},
        idle and idle["behind"],
        max(run["keys"] for run in runs),
        [run["heap"] for run in runs if "heap" in run],
    )


def relative_to(base: Way, other: Way, of: Callable[[Way], Sequence[float]]) -> Spread:
    """Return a figure relative to the base's in the same round."""
    pairs = zip(of(base), of(other), strict=True)
    return Spread.of([mine / theirs for theirs, mine in pairs if theirs] or [float("nan")])


def rates(way: Way) -> Sequence[float]:
    """Return the rows per second of each round."""
    return way.rates


def own(way: Way) -> Sequence[float]:
    """Return the processor seconds per million rows of each round."""
    return way.own


def more_heap(base: Way, other: Way) -> Spread:
    """Return how many MiB of heap it has more than the base in the same round."""
    pairs = zip(base.heap, other.heap, strict=True)
    return Spread.of([mine - theirs for theirs, mine in pairs])


@dataclass(frozen=True)
class Asked:
    """How often a task has looked up keys, and how often it may where each row has another one."""

    found: float
    most: float


def lookups(found: Mapping[str, Any], way: Way) -> Asked:
    """Return the LookupRows of a task of a batch."""
    tasks = Case(**found["case"]).tasks
    asked = way.requests[TABLETS].get("LookupRows", 0.0) / tasks
    return Asked(asked, 1 + found["batch_rows"] / tasks / _KEYS_OF_A_REQUEST)


@dataclass(frozen=True)
class Busy:
    """What share of the processors others took while a case was measured, and the hypervisor."""

    others: float
    stolen: float
    idle: float

    @property
    def text(self) -> str:
        """One line."""
        return (
            f"meanwhile other work took {self.others:.0%} of the processors, the hypervisor "
            f"{self.stolen:.0%}, and {self.idle:.0%} were idle"
        )


def busy(found: Mapping[str, Any]) -> Busy:
    """Return how busy the machine was, over all measured batches."""
    runs = [run["machine"] for figures in found["rounds"] for run in figures["ways"].values()]
    whole = sum(run["all"] for run in runs) or 1.0
    shares = (sum(run[what] for run in runs) / whole for what in ("others", "stolen", "idle"))
    return Busy(*shares)


@dataclass(frozen=True)
class Goal:
    """A bound on a figure of the job."""

    what: str
    bound: float
    is_least: bool
    found: float

    @property
    def is_met(self) -> bool:
        """Whether the figure is on the right side of the bound, as it is shown."""
        value = round(self.found, 2)
        return value >= self.bound if self.is_least else value <= self.bound

    @property
    def text(self) -> str:
        """One line."""
        bound = f"at {'least' if self.is_least else 'most'} {self.bound}"
        return f"{self.what} {self.found:.2f} ({bound}): {'met' if self.is_met else 'MISSED'}"


RATE, PROCESSOR = "rows per second", "CPU seconds"
REQUESTS, SECONDS = "requests per batch", "seconds per batch"
HEAP, ASKED = "more heap after a collection, MiB", "LookupRows per task, of 1 + rows / 2,000"
_LOOKUPS = ((PROCESSOR, 1.1, False), (ASKED, 1.0, False))
_CACHE = float(Settings.reference_cache_mb)
_GOALS: Mapping[str, Sequence[tuple[str, float, bool]]] = {
    "transactional-map": ((RATE, 1.6, True), (PROCESSOR, 0.5, False), (REQUESTS, 20.0, False)),
    "transactional-map-spark-3.5": ((RATE, 1.6, True), (PROCESSOR, 0.5, False)),
    "at-least-once-map": ((RATE, 1.6, True),),
    "idempotent-map": ((RATE, 1.3, True),),
    "transactional-window": ((RATE, 1.4, True),),
    "transactional-join": ((RATE, 1.6, True),),
    "transactional-deduplicate": ((RATE, 1.3, True),),
    "transactional-map-rejects": ((RATE, 0.92, True),),
    "transactional-map-archive": ((RATE, 0.85, True),),
    LOOKUPS: (*_LOOKUPS, (RATE, 0.6, True), (HEAP, 32.0, False)),
    f"{LOOKUPS}-million": (*_LOOKUPS, (RATE, 0.7, True), (HEAP, 32.0, False)),
    f"{LOOKUPS}-cache": (*_LOOKUPS, (RATE, 0.9, True), (HEAP, 32.0 + _CACHE, False)),
    "curve-merge-10000": ((RATE, 0.6, True),),
    "curve-merge-1000000": ((RATE, 0.35, True), (PROCESSOR, 2.0, False)),
    "curve-tablets-5ms-64": ((SECONDS, 0.4, False),),
    "curve-tablets-5ms-256": ((SECONDS, 0.4, False),),
    "curve-columns-80": ((RATE, 1.6, True),),
}
"""Name of a case -> its goals: the figure, its bound, and whether it is a lower one. Figures are
relative to the base's, but for the requests, which are the job's own, and the heap, which is a
difference."""


def goals(found: Mapping[str, Any]) -> Iterator[Goal]:
    """Yield the goals of a case, if it has any."""
    measured = ways(found)
    base, job = next(iter(measured.values())), measured[JOB]
    figures: Mapping[str, Callable[[], float]] = {
        RATE: lambda: relative_to(base, job, rates).middle,
        PROCESSOR: lambda: relative_to(base, job, own).middle,
        REQUESTS: job.asked,
        SECONDS: lambda: job.p50 / base.p50,
        HEAP: lambda: more_heap(base, job).middle,
        ASKED: lambda: (asked := lookups(found, job)).found / asked.most,
    }
    for what, bound, is_least in _GOALS.get(found["case"]["name"], ()):
        yield Goal(what, bound, is_least, figures[what]())
