"""`reference`: the table that it builds, and the link that it switches. No JVM."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from rich.console import Console
from yt import yson

from minicluster.testing import Running
from tests.support.helpers import fails_with, refusal
from tests.support.reference_steps import SCHEMA, Source, titles
from tests.support.server_errors import UNAVAILABLE_BY_HTTP
from ytstream.cluster import built_reference
from ytstream.cluster.client import connect
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance.lock import held
from ytstream.schema.columns import Column
from ytstream_tools.reference import building
from ytstream_tools.reference.building import Wanted, build, rehearse
from ytstream_tools.reference.places import KEEP_SECONDS, folder_of
from ytstream_tools.reference.screen import Screen

USER = "robot-references"
WRITES = {"create", "set", "remove", "link", "alter_table", "mount_table", "start_operation"}
"""Commands that change the cluster, other than transactions and their locks."""


def _built(source: Source, wanted: Wanted | None = None) -> str:
    """Build it; return what was said."""
    said = io.StringIO()
    build(source.context, wanted or source.wanted(), Screen(Console(file=said, width=200)))
    return said.getvalue()


def test_a_static_table_becomes_a_frozen_table_behind_a_link(source: Source) -> None:
    source.write(titles(*range(50)))
    before = int(source.client.generate_timestamp())
    settings = replace(source.context.settings, account="default", medium="default")
    source.context = replace(source.context, settings=replace(settings, pool="robots"))
    _built(source, source.wanted(tablets=3))
    rows = sorted(titles(*range(50)), key=lambda row: (row["wiki"], row["title"].encode()))
    assert source.rows() == rows
    asked = ["tablet_state", "tablet_count", "account", "primary_medium", "optimize_for", "schema"]
    found = source.client.get(f"{source.link}/@", attributes=[*asked, built_reference.MARK])
    assert (found["tablet_state"], found["tablet_count"]) == ("frozen", 3)
    assert (found["account"], found["primary_medium"]) == ("default", "default")
    assert found["schema"].attributes == {"strict": True, "unique_keys": True}
    mark = found[built_reference.MARK]
    assert before < mark["timestamp"] < int(source.client.generate_timestamp())
    assert (mark["source"], mark["key"]) == (source.path, ["wiki", "title"])
    (started, *_) = source.client.list_operations()["operations"]
    spec = source.client.get_operation(started["id"], attributes=["spec"])["spec"]
    assert spec["pool"] == "robots"
    for io_ in ("partition_job_io", "sort_job_io", "merge_job_io"):
        assert spec[io_]["table_writer"]["block_size"] == 256 << 10
    # A lookup at a moment before the rows finds nothing, and no error. The mark is after them all.
    key, at = {"wiki": rows[0]["wiki"], "title": rows[0]["title"]}, mark["timestamp"]
    assert len([*source.client.lookup_rows(source.link, [key], timestamp=at)]) == 1
    assert not [*source.client.lookup_rows(source.link, [key], timestamp=before)]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("int64", [-(2**63), -1, 0, 2**63 - 1]),
        ("uint64", [yson.YsonUint64(number) for number in (0, 7, 2**64 - 1)]),
        ("double", [-1.5, 0.0, 2.25]),
        ("boolean", [False, True]),
        ("string", [b"", b"\x00\xff", b"\xff", b"text"]),
        ("utf8", ["", "a", "Ж", "山", "\U0001f600"]),
        ("timestamp", [yson.YsonUint64(number) for number in (0, 1_700_000_000_000_000)]),
    ],
)
def test_each_type_of_a_key(source: Source, type_: str, values: list[Any]) -> None:
    """Each value begins a tablet of its own."""
    source.write(
        [{"k": value, "n": number} for number, value in enumerate(values)][::-1],
        [{"name": "n", "type": "int64"}, {"name": "k", "type": type_, "required": True}],
    )
    _built(source, source.wanted("k", tablets=len(values)))
    for number, value in enumerate(values):
        (row,) = source.client.lookup_rows(source.link, [{"k": value}])
        assert row["n"] == number
    assert source.client.get(f"{source.link}/@tablet_count") == len(values)


def test_the_former_table_stays_for_an_hour(source: Source, cluster: Running) -> None:
    source.write(titles(1))
    _built(source)
    first = source.client.get(f"{source.link}/@path")
    source.write(titles(1, 2))
    said = _built(source)
    second = source.client.get(f"{source.link}/@path")
    assert (first != second, len(source.rows())) == (True, 2)
    assert f"{first} stays mounted" in said
    assert source.client.get(f"{first}/@tablet_state") == "frozen"
    cluster.client.clock.advance(KEEP_SECONDS + 1)
    said = _built(source)
    assert f"removed {first}: it has not been in use for" in said
    third = source.client.get(f"{source.link}/@path")
    assert [*source.client.list(folder_of(source.link), absolute=True)] == sorted([second, third])


@pytest.mark.thorough
def test_the_link_can_be_switched_back_by_hand(source: Source) -> None:
    source.write(titles(1))
    _built(source)
    first = source.client.get(f"{source.link}/@path")
    source.write(titles(1, 2))
    _built(source)
    source.client.link(first, source.link, force=True)
    assert len(source.rows()) == 1
    _built(source)
    assert len(source.rows()) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("by_hand", ["link", "remove"])
def test_after_a_switch_by_hand_each_table_stays_for_an_hour(
    source: Source, cluster: Running, by_hand: str
) -> None:
    """Batches may still read the table that the link has led to until then."""
    built = [_build_another(source) for _ in range(3)]
    cluster.client.clock.advance(KEEP_SECONDS - 60)
    if by_hand == "link":
        source.client.link(built[0], source.link, force=True)
    else:
        source.client.remove(f"{source.link}&")
    cluster.client.clock.advance(120)
    assert "removed" not in _built(source)
    cluster.client.clock.advance(KEEP_SECONDS - 60)
    assert "removed" not in _built(source)
    cluster.client.clock.advance(120)
    said = _built(source)
    for table in built:
        assert f"removed {table}: it has not been in use for" in said


def _build_another(source: Source) -> str:
    source.write(titles(1))
    _built(source)
    return str(source.client.get(f"{source.link}/@path"))


def _foreign(source: Source) -> dict[str, str]:
    """Make what others may have in the folder of the tables; return the type of each node."""
    folder = folder_of(source.link)
    for type_ in ("table", "map_node", "file", "document"):
        source.client.create(type_, f"{folder}/{type_}", recursive=True)
    source.client.create("table", f"{folder}/map_node/table")
    schema = [{"name": "n", "type": "int64"}]
    source.client.create("table", f"{folder}/queue", attributes={"dynamic": True, "schema": schema})
    return {name: source.client.get(f"{folder}/{name}/@type") for name in
            (*source.client.list(folder), "map_node/table")}  # fmt: skip


@pytest.mark.thorough
def test_what_others_have_in_the_folder_is_not_touched(source: Source, cluster: Running) -> None:
    """A link of theirs to a table of ours has no mark, though its target has."""
    foreign = _foreign(source)
    first = _build_another(source)
    latest = f"{folder_of(source.link)}/latest"
    source.client.link(first, latest)
    for _ in range(3):
        _build_another(source)
        cluster.client.clock.advance(KEEP_SECONDS + 1)
    assert not source.client.exists(first)
    assert source.client.exists(f"{latest}&")
    assert foreign == {
        name: source.client.get(f"{folder_of(source.link)}/{name}/@type") for name in foreign
    }


def test_a_dry_run_names_what_would_be_removed(source: Source, cluster: Running) -> None:
    _foreign(source)
    first = _build_another(source)
    _build_another(source)
    cluster.client.clock.advance(KEEP_SECONDS + 1)
    unfinished = f"{folder_of(source.link)}/unfinished"
    mark = {built_reference.MARK: built_reference.begun(source.path, ("wiki",))}
    source.client.create("table", unfinished, attributes=mark)
    said = rehearse(source.context, source.wanted())
    removed = [line for line in said if " would be removed: " in line]
    assert [line.split()[0] for line in removed] == sorted([first, unfinished])
    built = _built(source)
    for line in removed:
        assert f"removed {line.split()[0]}:" in built


def test_something_else_in_the_place_of_the_folder(source: Source) -> None:
    source.write(titles(1))
    source.client.create("table", folder_of(source.link))
    for given in (_built, lambda it: rehearse(it.context, it.wanted())):
        with fails_with(ErrorCode.USAGE) as caught:
            given(source)
        assert f"{folder_of(source.link)} is a table" in str(caught.value)


@pytest.mark.parametrize("had_link", [False, True])
def test_a_table_that_comes_to_the_path_of_the_link_is_not_replaced(
    source: Source, monkeypatch: pytest.MonkeyPatch, had_link: bool
) -> None:
    source.write(titles(1))
    if had_link:
        _built(source)
    switch = building._switch

    def late(*given: Any) -> None:
        source.client.create("table", source.link, force=True)
        switch(*given)

    monkeypatch.setattr(building, "_switch", late)
    with fails_with(ErrorCode.USAGE) as caught:
        _built(source)
    assert f"{source.link} is a table" in str(caught.value)
    assert source.client.get(f"{source.link}&/@type") == "table"


def test_a_switch_waits_for_one_that_was_killed(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction keeps the lock on the link until it expires."""
    source.write(titles(1))
    outside: Any = connect(source.context.settings)
    switch = building._switch

    def after_another(*given: Any) -> None:
        killed = outside.start_transaction(timeout=1_000)
        with outside.Transaction(transaction_id=killed):
            folder, _, name = source.link.rpartition("/")
            outside.lock(folder, mode="shared", child_key=name)
        switch(*given)

    monkeypatch.setattr(building, "_switch", after_another)
    _built(source)
    assert len(source.rows()) == 1


def test_a_sort_that_outlives_its_process_locks_nobody_out(source: Source) -> None:
    """Its transaction has made no folder, which it would keep locked until it expires."""
    source.write(titles(1))
    outside: Any = connect(source.context.settings)
    with building._snapshot(source.client, source.wanted()):
        plan = building._verified(source.context, source.wanted())
        said = Screen(Console(file=io.StringIO()))
        building._make_room(outside, plan.places, said)
        building._create(
            source.client, source.context.settings, plan.source, f"{plan.places.folder}/killed"
        )
        other = Source.__new__(Source)
        other.__dict__ |= source.__dict__
        other.context, other.client = replace(source.context, client=outside), outside
        _built(other)
    assert len(source.rows()) == 1


def test_a_dry_run_says_what_would_be_done(source: Source) -> None:
    source.write(titles(1, 2))
    before = source.client.get(f"{source.root}/@revision")
    said = rehearse(source.context, source.wanted())
    assert f"the link {source.link} would be switched to it" in said
    assert "nothing was changed" in said[-1]
    assert [*source.client.list(source.root)] == ["source"]
    assert source.client.get(f"{source.root}/@revision") == before


def test_a_link_to_a_table_of_somebody_else_is_switched_and_the_table_stays(
    source: Source,
) -> None:
    by_hand = f"{source.root}/by-hand"
    source.client.create("table", by_hand)
    source.client.link(by_hand, source.link)
    source.write(titles(1))
    assert f"{by_hand} was not made by `reference`" in _built(source)
    assert source.client.exists(by_hand)
    assert len(source.rows()) == 1


def test_repeated_keys_end_it_with_three_examples(source: Source) -> None:
    source.write(titles(1))
    _built(source)
    former = source.client.get(f"{source.link}/@path")
    source.write(titles(*range(30), 4, 5, 6, 7, 4))
    said = refusal(partial(_built, source))
    examples = [f"('w{page % 3}', '{titles(page)[0]['title']}')" for page in (6, 4, 7)]
    for example, count in zip(examples, (2, 3, 2), strict=True):
        assert f"{example} {count} times" in said
    assert source.client.get(f"{source.link}/@path") == former
    assert [*source.client.list(folder_of(source.link), absolute=True)] == [former]


def test_a_source_that_changes_is_read_as_it_was(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another client rewrites it between what is verified and what is sorted."""
    source.write(titles(*range(10)))
    create = building._create

    def rewritten(*given: Any) -> None:
        outside: Any = connect(source.context.settings)
        outside.write_table(source.path, titles(99))
        create(*given)

    monkeypatch.setattr(building, "_create", rewritten)
    assert "has changed in the meantime" in _built(source)
    assert len(source.rows()) == 10
    monkeypatch.undo()
    assert "has changed" not in _built(source)
    assert [row["page"] for row in source.rows()] == [99]


@pytest.mark.thorough
def test_two_at_once_do_not_meet(source: Source) -> None:
    source.write(titles(1))
    with held(source.context, source.link, building._ANOTHER):
        said = refusal(partial(_built, source))
    assert building._ANOTHER.what in said
    _built(source)


def test_a_table_that_cannot_become_dynamic_is_removed_again(
    source: Source, cluster: Running
) -> None:
    source.write(titles(1))
    error = {"code": 902, "message": 'Account "default" is over tablet count limit'}
    cluster.client.faults.add(action="fail", method="alter_table", error=error)
    with pytest.raises(Exception, match="over tablet count limit"):
        _built(source)
    assert [*source.client.list(folder_of(source.link))] == []
    assert not source.client.exists(f"{source.link}&")


def _dynamic(source: Source) -> None:
    schema = [{**SCHEMA[1], "sort_order": "ascending"}, SCHEMA[2]]
    attributes = {"dynamic": True, "schema": schema}
    source.client.create("table", source.path, attributes=attributes)


def _weak(source: Source) -> None:
    source.client.create("table", source.path)
    source.client.write_table(source.path, [{"wiki": "a", "title": "b"}])


def _computed(source: Source) -> None:
    hashed = {"name": "hash", "type": "uint64", "expression": "farm_hash(wiki)"}
    source.client.create("table", source.path, attributes={"schema": [*SCHEMA, hashed]})
    source.client.write_table(source.path, titles(1))


def _any(source: Source) -> None:
    source.write([{"wiki": {"a": 1}, "title": "b"}], [{"name": "wiki", "type": "any"}, SCHEMA[0]])


def _null(source: Source) -> None:
    source.write([*titles(*range(5)), {"wiki": "w0", "title": None, "page": 1}])


REFUSED: dict[str, tuple[Callable[[Source], Any], tuple[str, ...], str]] = {
    "missing": (lambda source: None, (), "it is missing"),
    "a folder": (lambda source: source.client.create("map_node", source.path), (), "map_node"),
    "dynamic": (_dynamic, (), "it is dynamic already"),
    "without a schema": (_weak, (), "no strict schema"),
    "without rows": (lambda source: source.write([]), (), "it has no rows"),
    "an unknown column": (lambda source: source.write(titles(1)), ("name",), "no column name"),
    "a column twice": (lambda source: source.write(titles(1)), ("wiki", "wiki"), "twice"),
    "only a key": (
        lambda source: source.write(titles(1)), ("wiki", "title", "page"), "nothing to look up"
    ),
    "a computed column": (_computed, ("hash", "wiki"), "computed column"),
    "a type that has no order": (_any, ("wiki",), "cannot be a key"),
    "a null": (_null, (), "the key column title has nulls"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_source_that_cannot_be_one_is_refused_before_anything_is_written(
    source: Source, cluster: Running, case: str
) -> None:
    make, key, wanted = REFUSED[case]
    make(source)
    cluster.client.journal.clear()
    with fails_with(ErrorCode.REFERENCE) as caught:
        _built(source, source.wanted(*key))
    assert wanted in str(caught.value)
    assert not WRITES & {entry.method for entry in cluster.client.journal()}


def test_the_reference_itself_is_not_a_source(source: Source) -> None:
    source.client.create("table", source.link)
    source.client.link(source.link, source.path)
    assert "is a table" in refusal(partial(_built, source))
    source.client.remove(source.link)
    source.client.remove(f"{source.path}&")
    source.write(titles(1))
    source.client.link(source.path, source.link)
    assert "it is the reference itself" in refusal(partial(_built, source))
    assert source.client.exists(source.path)


def test_a_folder_that_is_missing(source: Source) -> None:
    source.write(titles(1))
    wanted = replace(source.wanted(), link=f"{source.root}/none/titles")
    for given in (lambda: rehearse(source.context, wanted), lambda: _built(source, wanted)):
        with fails_with(ErrorCode.USAGE) as caught:
            given()
        assert f"the folder {source.root}/none is missing" in str(caught.value)


def test_a_key_without_columns(source: Source) -> None:
    source.write(titles(1))
    wanted = replace(source.wanted(), key=())
    for given in (lambda: rehearse(source.context, wanted), lambda: _built(source, wanted)):
        with fails_with(ErrorCode.USAGE) as caught:
            given()
        assert "KEY names no column" in str(caught.value)


@pytest.mark.parametrize("setting", ["account", "tablet_cell_bundle", "medium"])
def test_what_the_configuration_names_has_to_exist(source: Source, setting: str) -> None:
    source.write(titles(1))
    given: dict[str, Any] = {setting: "nothing"}
    settings = replace(source.context.settings, **given)
    source.context = replace(source.context, settings=settings)
    with fails_with(ErrorCode.QUOTA) as caught:
        rehearse(source.context, source.wanted())
    assert f"`{setting}`" in str(caught.value)


def test_the_key_of_a_reference_of_the_repository(source: Source) -> None:
    """The order counts, too."""
    source.write(titles(1))
    columns = (Column("wiki", "string", key=True), Column("title", "utf8", key=True),
               Column("page", "uint64"))  # fmt: skip
    context = source.context
    source.context = replace(
        context,
        job=replace(context.job, references={"titles": columns}),
        settings=replace(context.settings, references={"titles": source.link}),
    )
    for key in (("title", "wiki"), ("title",)):
        with fails_with(ErrorCode.USAGE) as caught:
            _built(source, source.wanted(*key))
        assert "its key in tables.py is wiki, title" in str(caught.value)
    assert not source.client.exists(folder_of(source.link))
    _built(source)


def test_columns_that_tables_py_cannot_name(source: Source) -> None:
    names = ("a.b", "wiki", "Wiki", "title")
    schema = [{"name": name, "type": "string"} for name in names]
    source.write([dict.fromkeys(names, "x")], schema)
    assert "cannot name the column 'a.b'" in refusal(
        partial(rehearse, source.context, source.wanted("a.b"))
    )
    said = rehearse(source.context, source.wanted("wiki"))
    assert [line.split("'")[1] for line in said if line.startswith("remark")] == ["a.b", "Wiki"]


def test_the_quota_of_tablets_is_asked_first(source: Source) -> None:
    source.write(titles(*range(10)))
    client = source.client
    limits = "//sys/accounts/default/@resource_limits/tablet_count"
    before = client.get(limits)
    client.set(limits, client.get("//sys/accounts/default/@resource_usage/tablet_count") + 2)
    source.context = replace(
        source.context, settings=replace(source.context.settings, account="default")
    )
    try:
        with fails_with(ErrorCode.QUOTA):
            rehearse(source.context, source.wanted(tablets=3))
        rehearse(source.context, source.wanted(tablets=2))
    finally:
        client.set(limits, before)


@pytest.mark.parametrize("lacking", ["read", "write", "remove", "mount", "the link"])
def test_a_right_that_is_missing_is_named(
    source: Source, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    client = source.client
    source.write(titles(1))
    _built(source)
    if not client.exists(f"//sys/users/{USER}"):
        client.create("user", attributes={"name": USER})
    rights = {source.root: {"write", "remove", "mount"}, source.path: {"read"},
              f"{source.link}&": {"remove"}}  # fmt: skip
    for path, permissions in rights.items():
        is_link = path.endswith("&")
        if (lacking == "the link") == is_link:
            permissions = permissions - ({"remove"} if is_link else {lacking})
        entry = {"action": "allow", "subjects": [USER], "permissions": sorted(permissions)}
        client.set(f"{path}/@acl", [entry])
        client.set(f"{path}/@inherit_acl", False)
    monkeypatch.setattr(client, "get_user_name", lambda: USER)
    with fails_with(ErrorCode.PERMISSION) as caught:
        rehearse(source.context, source.wanted())
    assert str(caught.value).count(" on ") == 1


@pytest.mark.thorough
def test_an_outage_in_the_middle_is_waited_for(source: Source, cluster: Running) -> None:
    source.write(titles(1))
    for method in ("start_operation", "get_operation", "mount_table", "link"):
        cluster.client.faults.add(action="fail", method=method, error=UNAVAILABLE_BY_HTTP)
    _built(source)
    assert len(source.rows()) == 1


def test_without_statistics_the_key_columns_are_read(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks that an older server has written have none."""
    answer = {"column_non_null_value_counts": {}, "legacy_chunk_row_count": 6}
    for said in ({}, answer):
        given = partial(list[Any], [said])
        monkeypatch.setattr(source.client, "get_table_columnar_statistics", lambda _, g=given: g())
        source.write([*titles(*range(5)), {"wiki": "w0", "title": None, "page": 1}])
        assert "the key column title has nulls" in refusal(
            partial(rehearse, source.context, source.wanted())
        )
        source.write(titles(*range(5)))
        rehearse(source.context, source.wanted())
