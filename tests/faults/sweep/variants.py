"""The jobs of the proof: a guarantee, a processing type, a number of queues, a connector."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from tests.support.examples import MERGE, PAIRS, STATEFUL, TOTALS
from ytstream.job import PROCESSINGS
from ytstream.settings.job_settings import MEMORY, OWN, ROCKSDB, SPYT

MINUTE_US = 60_000_000


class Variant(NamedTuple):
    """One job of the template."""

    guarantee: str
    processing: str
    queues: int = 1
    is_listing: bool = False
    """Whether it is the control: the listing of SPYT's documentation, in the mode `guarantee`."""
    connector: str = OWN
    """Whose reader and writer the job runs on. The listing has SPYT's."""
    store: str = ROCKSDB
    """Where Spark keeps the state of a job that has one."""

    @property
    def name(self) -> str:
        """The name that those of its cases begin with."""
        name = f"{self.guarantee}-{self.processing}-{self.queues}"
        name = f"{name}-{self.connector}" if self.connector != OWN else name
        name = f"{name}-{self.store}" if self.store != ROCKSDB else name
        return f"listing-{name}" if self.is_listing else name

    @property
    def root(self) -> str:
        """Its folder on the cluster."""
        return f"//home/proof/{self.name}"

    @property
    def is_stateful(self) -> bool:
        """Whether the checkpoint is on the cluster."""
        return self.processing != TOTALS and PROCESSINGS[self.processing].is_stateful

    @property
    def step_us(self) -> int:
        """How far the rows of one batch are ahead of those before: windows close in between."""
        minutes = 60 if self.processing == "sessions" else 1
        return minutes * MINUTE_US


VARIANTS = (
    *(
        Variant(guarantee, processing, queues, connector=connector)
        for connector, queues, (guarantee, processing) in product((OWN, SPYT), (1, 2), PAIRS)
        if processing != MERGE
    ),
    *(Variant("transactional", kind, queues) for kind in (TOTALS, MERGE) for queues in (1, 2)),
)
"""All that the template offers, with one queue and with two, on both connectors. SPYT's neither
adds to totals in a table nor merges rows."""
STUMBLING = tuple(
    Variant("transactional", processing, connector=connector, store=store)
    for processing, store, connector in product(STATEFUL, (ROCKSDB, MEMORY), (OWN, SPYT))
)
"""Jobs with state that meet what a cluster does that stumbles: on both stores and both connectors.
"""
JOBS = tuple(dict.fromkeys((*VARIANTS, *STUMBLING)))
"""All jobs."""
LISTINGS = tuple(
    Variant(guarantee, processing, queues, is_listing=True)
    for guarantee, processing, queues in (
        *product(("transactional", "idempotent", "at_least_once"), ("map",), (1, 2)),
        *product(("transactional", "at_least_once"), ("window", "deduplicate"), (1,)),
    )
)
"""The control: SPYT's page has a listing for each mode, and Spark's functions run in it."""


def variant_of(name: str) -> Variant:
    """Return the variant of that name. Raises KeyError."""
    return {variant.name: variant for variant in (*JOBS, *LISTINGS)}[name]
