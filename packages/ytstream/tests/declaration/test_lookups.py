"""What lookup() refuses, and what REFERENCES and [references] refuse, in words; without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from tests.support.examples import example, settings_of
from tests.support.helpers import refusal
from ytstream import Column, lookup
from ytstream.declaration import validation
from ytstream.declaration.lookups import Lookup, available
from ytstream.guarantees import guarantee_of
from ytstream.schema.columns import Column as Resolved
from ytstream.schema.columns import resolved

AUCTIONS = [Column("auction", "int64", key=True), Column("seller", "int64")]
TITLES = [
    Column("wiki", "utf8", key=True),
    Column("title", "utf8", key=True),
    Column("place", "uint64", key=True),
]
BAD_KEY = [Column("id", "uuid", key=True), Column("label", "utf8")]


@dataclass
class Remembered:
    """References that remember the calls."""

    columns: Mapping[str, tuple[Resolved, ...]] = field(
        default_factory=lambda: {
            "auctions": resolved("", AUCTIONS),
            "titles": resolved("", TITLES),
            "ids": resolved("", BAD_KEY),
            "codes": resolved("", [Column("code", "string", key=True)]),
            "times": resolved("", [Column("at", "datetime", key=True)]),
        }
    )
    calls: list[Lookup] = field(default_factory=list)

    def joined(self, rows: DataFrame, lookup: Lookup) -> DataFrame:
        self.calls.append(lookup)
        return rows


@dataclass
class Rows:
    """Rows as far as lookup() asks them."""

    schema: spark.StructType

    @property
    def columns(self) -> list[str]:
        return self.schema.names


def _rows(**columns: spark.DataType) -> DataFrame:
    fields = [spark.StructField(name, kind) for name, kind in columns.items()]
    return cast(DataFrame, Rows(spark.StructType(fields)))


LONG, TEXT = spark.LongType(), spark.StringType()


def _called(rows: DataFrame, *given: Any, **named: Any) -> Lookup:
    known = Remembered()
    with available(known):
        lookup(rows, *given, **named)
    return known.calls[0]


def test_the_whole_key_is_named_in_its_order() -> None:
    one = _called(_rows(auction=LONG), "auctions", "auction")
    assert (dict(one.on), [c.name for c in one.columns]) == ({"auction": "auction"}, ["seller"])
    rows = _rows(lang=TEXT, name=TEXT, place=spark.IntegerType())
    on = {"title": "name", "place": "place", "wiki": "lang"}
    assert [*_called(rows, "titles", on).on] == ["wiki", "title", "place"]
    rows = _rows(place=LONG, wiki=TEXT, title=TEXT)
    assert [*_called(rows, "titles", ["place", "title", "wiki"]).on] == ["wiki", "title", "place"]


@pytest.mark.parametrize(
    ("rows", "given", "named", "said"),
    [
        (_rows(auction=LONG), ("sellers", "auction"), {}, "has auctions, codes, ids, times"),
        (_rows(wiki=TEXT, title=TEXT), ("titles", ["wiki", "title"]), {}, "give the whole key"),
        (_rows(bid=LONG), ("auctions", "bid"), {}, "'bid' is not a key column (auction)"),
        (_rows(bid=LONG), ("auctions", "auction"), {}, "have no column 'auction' (they have bid)"),
        (_rows(a=TEXT), ("auctions", {"auction": "a"}), {}, 'F.expr("try_cast(`a` AS LONG)")'),
        (_rows(code=LONG), ("codes", "code"), {}, 'F.expr("try_cast(`code` AS STRING)")'),
        (_rows(at=LONG), ("times", "at"), {}, "Spark casts nothing to it"),
        (_rows(id=TEXT), ("ids", "id"), {}, "a key of type uuid cannot be looked up"),
        (_rows(auction=LONG, Seller=LONG), ("auctions", "auction"), {}, "'seller' already"),
        (_rows(auction=LONG), ("auctions", "auction"), {"found": "Auction"}, "'Auction' already"),
        (_rows(auction=LONG), ("auctions", "auction"), {"found": "seller"}, "would be added twice"),
        (_rows(auction=LONG), ("auctions", "auction", ["buyer"]), {}, "'buyer' is not a value"),
        (_rows(auction=LONG), ("auctions", "auction", ["auction"]), {}, "'auction' is not a value"),
        (_rows(auction=LONG), ("auctions", "auction"), {"how": "right"}, "one of left, inner"),
        (_rows(auction=LONG), ("auctions", "auction"), {"by": "hash"}, "wanted 'table' or 'keys'"),
        (
            _rows(a=TEXT, place=LONG),
            ("titles", {"wiki": "a", "title": "a", "place": "place"}),
            {},
            "one column of the rows is named twice",
        ),
    ],
)  # fmt: skip
def test_a_wrong_call_is_refused(
    rows: DataFrame, given: tuple[Any, ...], named: Mapping[str, Any], said: str
) -> None:
    assert said in refusal(lambda: _called(rows, *given, **named))


def test_outside_of_transform_there_are_no_references() -> None:
    assert "output_frames()" in refusal(lambda: lookup(_rows(auction=LONG), "auctions", "auction"))


def test_references_and_the_configuration_must_fit() -> None:
    job = replace(example("transactional", "map").job, references={"auctions": AUCTIONS})
    validation.verify(job)
    settings = settings_of(job, "//home/job")
    guarantee = guarantee_of(job)

    def said(**paths: str) -> str:
        given = replace(settings, references=paths)
        return refusal(lambda: validation.verify_configuration(job, given, guarantee))

    assert "[references] lacks auctions" in said()
    assert "[references] names bids" in said(auctions="//home/a", bids="//home/b")
    forgotten = replace(job, references={})
    given = replace(settings, references={"auctions": "//home/a"})
    text = refusal(lambda: validation.verify_configuration(forgotten, given, guarantee))
    assert "names auctions, and Job(...) in job.py has no REFERENCES" in text
    assert "references=REFERENCES" in text
    validation.verify_configuration(job, given, guarantee)


@pytest.mark.parametrize(
    ("references", "said"),
    [
        ({"auctions": AUCTIONS[1:]}, "has no key column"),
        ({"auctions": 7}, "wanted a list"),
        ([AUCTIONS], "wanted a dict"),
        ({" ": AUCTIONS}, "not one line of text"),
    ],
)
def test_references_of_another_kind_are_refused(references: Any, said: str) -> None:
    job = replace(example("transactional", "map").job, references=references)
    assert said in refusal(lambda: validation.verify(job))


def test_idempotent_has_no_references() -> None:
    job = replace(example("idempotent", "map").job, references={"auctions": AUCTIONS})
    assert "a batch that is written again may look up other values" in refusal(
        lambda: validation.verify(job)
    )
