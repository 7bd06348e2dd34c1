"""A job that looks up a reference, for what runs old rows again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.helpers import ContextOf
from ytstream import Column
from ytstream.cluster.built_reference import MARK, mark
from ytstream.job import JobContext
from ytstream.provisioning import job_objects

AUCTIONS = [Column("auction", "int64", key=True), Column("seller", "int64")]


@pytest.fixture
def looking_up(context_of: ContextOf, root: str) -> JobContext:
    """A job with a reference that has no rows yet."""
    made = context_of("transactional")
    job = replace(made.job, references={"auctions": AUCTIONS})
    settings = replace(made.settings, references={"auctions": f"{root}/auctions"})
    context = replace(made, job=job, settings=settings)
    job_objects.provision(context)
    # A table without a mark has its rows from the second after its creation on.
    context.client.set(f"{root}/auctions/@{MARK}", mark(2, "//static", ("auction",)))
    return context
