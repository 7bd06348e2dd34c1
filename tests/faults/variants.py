"""A variant: one job of the template, as every harness of faults names it."""

from __future__ import annotations

from typing import NamedTuple

from local_extensions.versions import SPARK
from tests.support.examples import TOTALS
from ytstream.job import PROCESSINGS
from ytstream.settings.job_settings import OWN, ROCKSDB

_SECOND_US = 1_000_000
_MINUTE_US = 60 * _SECOND_US


class Variant(NamedTuple):
    """A job: the answers it is generated from, and what is changed in it."""

    guarantee: str
    processing: str
    queues: int = 1
    is_listing: bool = False
    """Whether it is the control: the listing of SPYT's documentation, in the mode `guarantee`."""
    connector: str = OWN
    """Whose reader and writer a job of the sweep runs on. The listing has SPYT's."""
    store: str = ROCKSDB
    """Where Spark keeps the state of a job that has one."""
    is_static: bool = False
    """Whether its first output is static."""
    has_snapshots: bool = False
    """Whether it uploads a snapshot of its state after each batch."""
    spark: str = SPARK

    @property
    def name(self) -> str:
        """The name that those of its cases begin with."""
        differs = (
            (self.connector, self.connector != OWN),
            (self.store, self.store != ROCKSDB),
            ("static", self.is_static),
            (f"spark-{self.spark}", self.spark != SPARK),
        )
        words = [self.guarantee, self.processing, str(self.queues)]
        words += [word for word, is_said in differs if is_said]
        return "-".join([*["listing"][: self.is_listing], *words])

    @property
    def root(self) -> str:
        """Its folder on the cluster of a sweep."""
        return f"//home/proof/{self.name}"

    @property
    def is_stateful(self) -> bool:
        """Whether the checkpoint is on the cluster: else it is on the driver's disk."""
        return self.processing != TOTALS and PROCESSINGS[self.processing].is_stateful

    @property
    def may_repeat(self) -> bool:
        """Whether rows may repeat: at least once allows it, unless they are published in tables."""
        return self.guarantee == "at_least_once" and not self.is_static

    @property
    def step_us(self) -> int:
        """How far the rows of one batch are ahead of those before: windows close in between."""
        known = {"window": 12 * _SECOND_US, "sessions": 34 * _MINUTE_US}
        return known.get(self.processing, _MINUTE_US)

    @property
    def back_us(self) -> int:
        """How old half of the rows of a batch are: less than the watermark is behind them."""
        known = {"window": 8 * _SECOND_US, "sessions": 8 * _MINUTE_US}
        return known.get(self.processing, 0)
