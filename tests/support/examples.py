"""The example jobs of the template, as the answers of a user would combine them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from ytstream import Job
from ytstream.settings.job_settings import Settings
from ytstream_tools.demo.job_sample import Sample

TEMPLATES = Path(__file__).parents[2] / "templates"
IN_STATE = Path(__file__).parent / "in_state"
WITH_DELETES = Path(__file__).parent / "with_deletes"

TOTALS = "totals"
"""What the template makes for `aggregate`: its table adds up. The example "aggregate" has the same
totals in Spark's state, as jobs of 1.0.0 do."""
MERGE = "merge"
"""The newest row of a key: only on our own connector."""
DELETES = "deletes"
"""The same with deletes, and with rows that come late: what tests of faults play for `merge`."""
STATELESS = ("map", "join")
STATEFUL = ("window", "deduplicate", "aggregate", "sessions")
PAIRS = (
    *(("transactional", processing) for processing in (*STATELESS, *STATEFUL)),
    ("idempotent", "map"),
    *(("at_least_once", processing) for processing in ("map", "join")),
    *(("at_least_once", processing) for processing in ("window", "deduplicate", "sessions")),
    ("transactional", MERGE),
)
"""Every (guarantee, processing) that the template offers."""

CONNECTOR: str = os.environ.get("YTSTREAM_TEST_CONNECTOR", Settings.connector)
"""The connector of all jobs: the default one, unless the shell names another for a whole run."""

_NONE = 10**18
"""One row in so many is odd: none is."""


@dataclass(frozen=True)
class Example:
    """One job with the rows to try it with."""

    job: Job
    sample: Sample


@cache
def example(
    guarantee: str,
    processing: str,
    queues: int = 1,
    *,
    rejects: bool = False,
    odd: int | None = None,
) -> Example:
    """Load the files that a project with these answers would have.

    Without ``rejects`` the job has no REJECT, and its sample no row that would be rejected. With
    ``odd``, one row in so many is: in the template's sample, few batches of 40 rows have any.
    """
    keyed = ""
    if guarantee == "idempotent":
        keyed = "_idempotent_multi" if queues > 1 else "_idempotent"
    odd = odd if rejects else _NONE
    package = _package(f"example_{processing}{keyed}{f'_rejects_{odd}' if rejects else ''}")
    declared = IN_STATE if processing == "aggregate" else TEMPLATES / template_of(processing)
    tables = _load(package, "tables", declared / f"tables{keyed}.py")
    made = WITH_DELETES if processing == DELETES else declared
    transform = _load(package, "transform", made / f"transform{keyed}.py")
    # In this order: expected.py may import rows.py.
    rows = _load(package, "rows", _own_or_shared(template_of(processing), "rows.py"))
    rows.ODD = odd or rows.ODD
    made = WITH_DELETES if processing == DELETES else TEMPLATES / template_of(processing)
    expected = _load(package, "expected", made / "expected.py")
    job = Job(
        name=f"{processing}-of-bids",
        processing=template_of(processing),
        guarantee=guarantee,
        queue=tables.QUEUE,
        outputs=tables.OUTPUTS if rejects else {"output": tables.OUTPUTS["output"]},
        transform=transform.transform,
        merge=getattr(transform, "MERGE", {}),
        reject=transform.REJECT if rejects else {},
        reference=getattr(tables, "REFERENCE", ()),
        shuffle_partitions=2,
    )
    sample = Sample(
        rows=rows.rows,
        event_time=rows.EVENT_TIME,
        expected=expected.expected,
        others={"rejected": expected.rejected},
        reference=getattr(rows, "REFERENCE", ()),
    )
    return Example(job, sample)


def settings_of(job: Job, root: str, *, proxy: str = "127.0.0.1:1", queues: int = 1) -> Settings:
    """Return settings with all objects of the job in the Cypress folder ``root``."""
    return Settings(
        proxy=proxy,
        queues=tuple(f"{root}/queue-{number}" for number in range(queues)),
        consumer=f"{root}/consumer",
        checkpoint=f"{root}/checkpoint",
        ledger=f"{root}/ledger",
        outputs={name: f"{root}/{name}" for name in job.outputs},
        reference=f"{root}/reference" if job.reference else None,
        create_queues=True,
        trigger_seconds=0.2,
        max_rows_per_partition=2_000,
        dyn_batch_size=1_000,
        connector=CONNECTOR,
    )


def _package(name: str) -> str:
    """Make the package that the files are loaded into, and return its name."""
    package = ModuleType(name)
    package.__path__ = []
    sys.modules[name] = package
    return name


def offered(processing: str) -> str:
    """Return the name of the example that the template makes of an answer."""
    return TOTALS if processing == "aggregate" else processing


def template_of(processing: str) -> str:
    """Return the template's name of the processing: its folder."""
    return {TOTALS: "aggregate", DELETES: MERGE}.get(processing, processing)


def played(processing: str) -> str:
    """Return the name of the example that tests of faults play for a processing."""
    return DELETES if processing == MERGE else processing


def _own_or_shared(processing: str, name: str) -> Path:
    """Return the file that the project's include takes: the processing's, else the shared one."""
    own = TEMPLATES / processing / name
    return own if own.is_file() else TEMPLATES / "shared" / name


def _load(package: str, name: str, path: Path) -> Any:
    spec = spec_from_file_location(f"{package}.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    # No Python worker of Spark could import it.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module
