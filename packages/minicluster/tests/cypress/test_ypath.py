"""Paths (documentation, "YPath")."""

from __future__ import annotations

import pytest
from yt import yson

from minicluster.core.errors import YtError
from minicluster.cypress.ypath import Attr, parse, parse_rich


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("/", ()),
        ("//a/b", ("a", "b")),
        ("//a\\/b/c\\@d", ("a/b", "c@d")),
        ("//\\x41/ж", ("A", "ж")),
        ("//a/@", ("a", Attr(""))),
        ("//@x/y/0", (Attr("x"), "y", "0")),
        ("//a/@schema/@strict", ("a", Attr("schema"), Attr("strict"))),
        ('//a b/"quoted"', ("a b", '"quoted"')),
    ],
)
def test_steps(text: str, steps: tuple[str, ...]) -> None:
    parsed = parse(text)
    assert parsed.steps == steps
    assert [isinstance(step, Attr) for step in parsed.steps] == [
        isinstance(step, Attr) for step in steps
    ]


def test_object_root_ampersand_and_star() -> None:
    assert parse("#1-2-3-4/@type").root == "1-2-3-4"
    assert parse("//a&/@target_path").raw == {1}
    assert parse("//a/*").star


@pytest.mark.parametrize(
    "text", ["", "a", "/a", "//", "//a/", "//a//b", "//a/@/b", "//a\\", "#12", "//a/*/b", "//a{b}"]
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(YtError):
        parse(text)


def test_rich_path() -> None:
    rich = parse_rich('<append=%true;x=">">//a/b{k,"v v"}[#1:#5,(7):]')
    assert rich.path == "//a/b"
    assert rich.attributes == {"append": True, "x": ">"}
    assert rich.columns == ["k", "v v"]
    assert rich.ranges == [
        {"lower_limit": {"row_index": 1}, "upper_limit": {"row_index": 5}},
        {"lower_limit": {"key": [7]}},
    ]


def test_rich_path_as_a_string_with_attributes() -> None:
    path = yson.to_yson_type("//a", attributes={"columns": ["k"]})
    assert parse_rich(path).columns == ["k"]


@pytest.mark.parametrize(
    "text", ["<append=%true//a", "//a[#x]", "//a{b", "//a[1:2", '//a{"\\xff"}']
)
def test_broken_rich_path(text: str) -> None:
    with pytest.raises(YtError):
        parse_rich(text)


@pytest.mark.parametrize("text", ["a{b}", "<x=1>a//b", "east://a{b}", "<x=1;>"])
def test_a_rich_path_has_a_root(text: str) -> None:
    with pytest.raises(YtError, match="does not start with a valid root-designator"):
        parse_rich(text)


def test_commas_inside_strings_divide_nothing() -> None:
    assert parse_rich('//t{"b,c",d}').columns == ["b,c", "d"]
    assert parse_rich('//t[("a,b"):]').ranges == [{"lower_limit": {"key": ["a,b"]}}]


def test_nulls_and_escaped_brackets() -> None:
    assert parse_rich("//t[(#,1)]").ranges == [{"exact": {"key": [None, 1]}}]
    assert parse_rich("//a\\[b{c}").path == "//a\\[b"
