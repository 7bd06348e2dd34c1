"""The jobs of the proof: a guarantee, a processing type, a number of queues, a connector."""

from __future__ import annotations

from itertools import product

from tests.faults.variants import Variant
from tests.support.examples import MERGE, PAIRS, STATEFUL, TOTALS
from ytstream.settings.job_settings import MEMORY, OWN, ROCKSDB, SPYT

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
