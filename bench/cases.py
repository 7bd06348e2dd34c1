"""What `python -m bench` can measure: one case is one job, in the ways that are compared.

The first way of a case is the base: figures of the others are also given relative to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tests.support.examples import MERGE, TOTALS

LISTING, JOB, PLAIN, NOOP = "listing", "job", "plain", "noop"
"""SPYT's documentation as it stands; the generated job; the same job without what the case is
about; the transformation alone, from Spark's own source of rows into its sink for nothing."""
WAYS: Mapping[str, str] = {
    LISTING: "SPYT's example of the same mode, from its documentation",
    JOB: "the generated job",
    PLAIN: "the same job without it",
    NOOP: "the transformation from memory to nothing",
}
TITLES: Mapping[str, str] = {LISTING: "SPYT's example"}
"""How people read the name of a variant; the stored results have the short one."""

REJECTS, OUTPUTS, STATIC, ARCHIVE = "rejects", "outputs", "static", "archive"
LOOKUP = "lookup"
"""What a case may add to the example job."""
EXTRAS: Mapping[str, str] = {
    REJECTS: "one row in a hundred rejected",
    OUTPUTS: "two outputs",
    STATIC: "a static output",
    ARCHIVE: "a static table per hour",
    LOOKUP: "keys looked up",
}
_SLOW_KINDS = {"sessions": 5}
"""A batch of this kind takes many times as long: fewer rows show as much."""
_MOST_KEYS_OF_A_BATCH = 1_000_000
"""While a state is filled."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rows: int = 120_000
    """Of a batch; less where a case says so."""
    batches: int = 5
    """Of a run. The first one is left out: Spark plans it, and there nothing is warm."""
    rounds: int = 6
    idle_seconds: float = 10.0
    """Seconds without rows, in which requests are counted."""
    starts: int = 4
    """Starts, and kills, of each kind."""
    most_rows: int = 240_000
    """What no batch exceeds."""


FULL = Size()
TINY = Size(rows=2_000, batches=2, rounds=2, idle_seconds=2.0, starts=1, most_rows=4_000)
"""For a look at whether everything works: no figure of it means anything."""


@dataclass(frozen=True)
class Case:
    """One job to measure."""

    name: str
    guarantee: str
    processing: str
    queues: int = 1
    extra: str = ""
    """One of EXTRAS, or nothing."""
    tablets: int = 4
    """Tablets of all queues together."""
    rows: int = 0
    """Rows of a batch, where it is not the size's."""
    keys: int = 0
    """Keys of the state, where the case is about their number; see jobs.py for how they get there.
    """
    columns: int = 0
    """Columns of a row, where the case is about its width."""
    tables: int = 0
    """Output tables, where the case is about their number."""
    reference: int = 0
    """Rows of the reference, where the case is about looking up keys."""
    has_cache: bool = False
    """Whether its keys are of a Zipf distribution, and executors keep what they have looked up.
    Otherwise all keys are equally likely, and nothing is kept."""
    delay_ms: int = 0
    """Milliseconds that the cluster adds to each request."""
    cores: int = 2
    spark: str | None = None
    """The Spark that runs the drivers, of .venv-SPARK; None for that of the bench."""
    most_rounds: int = 100
    """Rounds, where they are fewer than the size's."""
    only: tuple[str, ...] = ()
    """The ways, where they are not those of its kind."""

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways that are compared, the base first."""
        if self.only:
            return self.only
        if self.extra:
            return PLAIN, JOB
        # SPYT's sink has no update mode, which totals in a state need, nor does it add to a table.
        has_listing = self.processing not in ("aggregate", TOTALS, MERGE)
        return (LISTING, JOB, NOOP) if has_listing else (JOB, NOOP)

    @property
    def title(self) -> str:
        """What people read."""
        words = [f"`{self.guarantee}` `{self.processing}`"]
        words += ["two queues"] if self.queues > 1 else []
        words += ["one core"] if self.cores == 1 else []
        words += [f"Spark {self.spark}"] if self.spark else []
        words += [EXTRAS[self.extra]] if self.extra else []
        words += [f"{self.reference:,} rows"] if self.reference else []
        words += ["Zipf, with the cache"] if self.has_cache else []
        return ", ".join(words)

    def batch_rows(self, size: Size) -> int:
        """Return how many rows a batch has: as many of each tablet."""
        wanted = self.rows or size.rows // _SLOW_KINDS.get(self.processing, 1)
        wanted = min(wanted, size.most_rows)
        return max(1, wanted // self.tablets) * self.tablets

    def state_keys(self, size: Size) -> int:
        """Return how many keys the state has while batches are measured."""
        return min(self.keys, size.most_rows * 50)

    def reference_rows(self, size: Size) -> int:
        """Return how many rows the reference has in which keys are looked up."""
        return min(self.reference, size.most_rows * 50)

    @property
    def tasks(self) -> int:
        """In how many tasks Spark works on a batch: see ytstream/query/coalesce.py."""
        return min(self.tablets, self.cores)

    @property
    def memory(self) -> str:
        """Return the heap of the driver, which is the executor too."""
        return "512m" if self.keys and self.processing == TOTALS else "1g"

    @property
    def has_full_table(self) -> bool:
        """Whether the keys are in the output table before the first batch, and in no state."""
        return bool(self.keys) and self.processing in (TOTALS, MERGE)

    def keys_of_a_row(self, size: Size) -> int:
        """Return how many keys a row brings that comes before the measured batches."""
        most = min(_MOST_KEYS_OF_A_BATCH, self.state_keys(size))
        return max(1, most // self.batch_rows(size))

    def known_batches(self, size: Size) -> int:
        """Return how many batches come before the measured ones: until every key was seen."""
        if self.has_full_table:
            return 1
        brought = self.batch_rows(size) * self.keys_of_a_row(size)
        return max(1, -(-self.state_keys(size) // brought))

    @property
    def point(self) -> str:
        """The case among those of its curve, as people read it."""
        number = f"{int(self.name.split('-')[-1]):,}"
        return f"{self.processing}, {number}" if self.keys else number

    def written(self) -> dict[str, Any]:
        """Return the case as it is stored."""
        return asdict(self)


LOOKUPS = "transactional-join-lookup"
_GUARANTEED = (
    *(("transactional", kind) for kind in ("map", "join", "window", "deduplicate")),
    *(("transactional", kind) for kind in ("aggregate", TOTALS, "sessions", MERGE)),
    ("idempotent", "map"),
    *(("at_least_once", kind) for kind in ("map", "join")),
)


def _all() -> Iterator[Case]:
    for guarantee, kind in _GUARANTEED:
        name = f"{guarantee.replace('_', '-')}-{kind}"
        yield Case(name, guarantee, kind)
        yield Case(f"{name}-2", guarantee, kind, queues=2)
        yield Case(f"{name}-rejects", guarantee, kind, extra=REJECTS)
    for guarantee in ("transactional", "at_least_once"):
        name = f"{guarantee.replace('_', '-')}-map"
        yield Case(f"{name}-outputs", guarantee, "map", extra=OUTPUTS)
        yield Case(f"{name}-static", guarantee, "map", extra=STATIC)
        yield Case(f"{name}-archive", guarantee, "map", extra=ARCHIVE)
    yield Case("idempotent-map-outputs", "idempotent", "map", extra=OUTPUTS)
    for name, rows, has_cache in (
        (LOOKUPS, 3_000_000, False),
        (f"{LOOKUPS}-million", 1_000_000, False),
        (f"{LOOKUPS}-cache", 3_000_000, True),
    ):
        yield Case(name, "transactional", "join", extra=LOOKUP, reference=rows, has_cache=has_cache)
    for guarantee in ("transactional", "idempotent"):
        yield Case(f"one-core-{guarantee}", guarantee, "map", cores=1)
    yield Case("transactional-map-spark-3.5", "transactional", "map", spark="3.5")


def _of_keys(kind: str, keys: int, curve: str = "curve-state", rows: int = 50_000) -> Case:
    name = f"{curve}-{kind}-{keys}"
    return Case(name, "transactional", kind, rows=rows, keys=keys, only=(JOB,), most_rounds=1)


_KEYS = (10_000, 100_000, 1_000_000, 10_000_000)
_MAP, BOTH = ("transactional", "map"), (LISTING, JOB)
_LOOSE_MAP = ("at_least_once", "map")

CASES: Mapping[str, Case] = {case.name: case for case in _all()}
TOGETHER: Mapping[str, tuple[str, ...]] = {
    LOOKUPS: tuple(name for name in CASES if name.startswith(LOOKUPS)),
}
"""A case whose name stands for several -> their names."""
CURVES: Mapping[str, tuple[str, tuple[Case, ...]]] = {
    "curve-rows": (
        "rows of a batch",
        tuple(
            Case(f"curve-rows-{rows}", *_MAP, rows=rows, only=BOTH, most_rounds=3)
            for rows in (1_000, 4_000, 15_000, 60_000, 120_000, 240_000)
        ),
    ),
    "curve-tablets": (
        "tablets of the queue",
        tuple(
            Case(f"curve-tablets-{n}", *_MAP, tablets=n, rows=60_000, only=BOTH, most_rounds=3)
            for n in (1, 4, 16, 64, 256, 1024)
        ),
    ),
    "curve-tablets-5ms": (
        "tablets of the queue, with 5 ms added to each request",
        tuple(
            Case(
                f"curve-tablets-5ms-{n}",
                *_MAP,
                tablets=n,
                rows=76_800,
                delay_ms=5,
                only=BOTH,
                most_rounds=3,
            )
            for n in (4, 64, 256)
        ),
    ),
    "curve-columns": (
        "columns of a row",
        tuple(
            Case(f"curve-columns-{n}", *_MAP, columns=n, rows=30_000, only=BOTH, most_rounds=3)
            for n in (8, 20, 40, 80)
        ),
    ),
    # SPYT's sink has one table, so the base is the job with one.
    "curve-outputs": (
        "output tables",
        tuple(
            Case(f"curve-outputs-{n}", *_LOOSE_MAP, tables=n, rows=60_000, only=(JOB,))
            for n in (1, 2, 4, 8)
        ),
    ),
    "curve-small": (
        "rows of a small batch",
        tuple(
            Case(f"curve-small-{rows}", *_MAP, rows=rows, only=BOTH, most_rounds=3)
            for rows in (4, 40, 400)
        ),
    ),
    "curve-totals": (
        "keys of totals, in a state and in the table",
        tuple(_of_keys(kind, n) for n in _KEYS for kind in ("aggregate", TOTALS)),
    ),
    "curve-state": (
        "keys of the state",
        tuple(_of_keys("deduplicate", n) for n in _KEYS),
    ),
    "curve-state-small": (
        "keys of the state, in batches of 1,000 rows",
        tuple(_of_keys("deduplicate", n, "curve-state-small", 1_000) for n in _KEYS[-2:]),
    ),
    "curve-merge": (
        "keys of a table with MERGE",
        tuple(
            Case(
                f"curve-merge-{n}",
                "transactional",
                MERGE,
                rows=50_000,
                keys=n,
                only=(PLAIN, JOB),
                most_rounds=3,
            )
            for n in (10_000, 1_000_000)
        ),
    ),
}
"""Name of a curve -> what grows -> its cases."""
OF_CURVES: Mapping[str, tuple[str, Case]] = {
    case.name: (name, case) for name, (_, cases) in CURVES.items() for case in cases
}
"""A case of a curve -> the curve's name, and the case: each can be measured alone."""
STARTS: Mapping[str, tuple[str, str]] = {
    "starts": ("transactional", "map"),
    "starts-window": ("transactional", "window"),
}
"""What starts and kills are measured of: name -> guarantee and kind."""
EIGHT: Mapping[str, str] = {
    "transactional-map": "exactly once, the template's default",
    "transactional-join": "exactly once, with a reference table",
    "idempotent-map": "exactly once by the key of each row",
    "at-least-once-map": "nothing lost",
    "at-least-once-join": "nothing lost, with a reference table",
    "transactional-map-rejects": "what REJECT costs",
    "transactional-window": "a job with state",
    "starts": "start to first commit, kill -9 to next commit",
}
"""What `make bench` runs, and why."""
