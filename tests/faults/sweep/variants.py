"""The jobs of the proof: a guarantee, a kind of processing and a number of queues."""

from __future__ import annotations

from typing import NamedTuple

from ytstream.job import PROCESSINGS

MINUTE_US = 60_000_000


class Variant(NamedTuple):
    """One job of the template."""

    guarantee: str
    processing: str
    queues: int = 1
    #: Whether it is the control: the listing of SPYT's documentation, in the mode `guarantee`.
    is_listing: bool = False

    @property
    def name(self) -> str:
        """The name that those of its cases begin with."""
        name = f"{self.guarantee}-{self.processing}-{self.queues}"
        return f"listing-{name}" if self.is_listing else name

    @property
    def root(self) -> str:
        """Its folder on the cluster."""
        return f"//home/proof/{self.name}"

    @property
    def is_stateful(self) -> bool:
        """Whether the checkpoint is on the cluster."""
        return PROCESSINGS[self.processing].is_stateful

    @property
    def step_us(self) -> int:
        """How far the rows of one batch are ahead of those before: windows close in between."""
        minutes = 60 if self.processing == "sessions" else 1
        return minutes * MINUTE_US


VARIANTS = (
    Variant("transactional", "map"),
    Variant("idempotent", "map"),
    Variant("at_least_once", "map"),
    Variant("transactional", "window"),
    Variant("transactional", "map", 2),
    Variant("transactional", "deduplicate"),
    Variant("transactional", "aggregate"),
    Variant("transactional", "sessions"),
    Variant("transactional", "join"),
    Variant("idempotent", "map", 2),
    Variant("at_least_once", "window"),
    Variant("at_least_once", "deduplicate"),
    Variant("at_least_once", "join"),
)
#: The control, which is started again as it is.
LISTINGS = tuple(
    Variant(mode, "map", is_listing=True)
    for mode in ("transactional", "idempotent", "at_least_once")
)


def variant_of(name: str) -> Variant:
    """Return the variant of that name. Raises KeyError."""
    return {variant.name: variant for variant in (*VARIANTS, *LISTINGS)}[name]
