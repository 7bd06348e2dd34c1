"""What is put at the end of a transform.py, so that a row costs time or ends the job."""

from __future__ import annotations

SLEEPS = """

import time as _time


def _slow(value):
    _time.sleep({seconds})
    return value


_transform = transform


def transform(events):
    return _transform(events.withColumn("price", F.udf(_slow, "bigint")("price")))
"""
"""A Python function that waits for each row, as one that asks a service does. It keeps no core."""
POISON = 424_242_424_242
"""A price that no rate is known for."""
FAILS = f"""

def _rated(value):
    if value == {POISON}:
        raise ValueError("no rate for this price")
    return value


_transform = transform


def transform(events):
    return _transform(events.withColumn("price", F.udf(_rated, "bigint")("price")))
"""
CORRECTED = FAILS.replace('raise ValueError("no rate for this price")', "return 1")
WRONG = """

_transform = transform


def transform(events):
    return _transform(events).withColumn("auction", F.udf(lambda _: None, "bigint")("auction"))
"""
"""A version that leaves a required column empty."""
