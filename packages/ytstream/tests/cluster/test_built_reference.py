"""When a batch may begin to look keys up in a table: a lookup before that finds nothing."""

from __future__ import annotations

from dataclasses import replace

from tests.support.helpers import ContextOf
from ytstream.cluster import built_reference, mounting
from ytstream.cluster.client import Client
from ytstream.ownership import job_record


def test_a_finished_table_can_be_used_from_the_moment_that_its_mark_names(
    client: Client, root: str
) -> None:
    client.create("map_node", root, recursive=True)
    table = f"{root}/t"
    client.create("table", table)
    before = int(client.generate_timestamp())
    built_reference.finish(client, table, "//home/source", ("a",))
    found = client.get(f"{table}/@", attributes=[*built_reference.ASKED])
    assert before < built_reference.earliest(found) < int(client.generate_timestamp())


def test_another_table_can_be_used_from_the_second_after_its_creation() -> None:
    assert built_reference.earliest({"creation_time": "1970-01-01T00:00:02.500000Z"}) == 3 << 30
    assert not built_reference.is_frozen({"tablet_state": "frozen"})
    mark = built_reference.mark(1, "//home/source", ("a",))
    assert built_reference.is_frozen({"tablet_state": "frozen", built_reference.MARK: mark})
    assert not built_reference.is_frozen({"tablet_state": "mounted", built_reference.MARK: mark})


def test_a_table_that_was_not_finished_is_one_of_somebody_else() -> None:
    found = {
        "creation_time": "1970-01-01T00:00:02.500000Z",
        "tablet_state": "frozen",
        built_reference.MARK: built_reference.begun("//home/source", ("a",)),
    }
    assert built_reference.earliest(found) == 3 << 30
    assert not built_reference.is_frozen(found)


def test_a_job_waits_for_its_reference_and_names_the_command(
    provisioned_of: ContextOf, root: str
) -> None:
    """One that was built is mounted frozen again, and a link is named as the job names it."""
    context = provisioned_of("transactional")
    client, link, written = context.client, f"{root}/titles", f"{root}/written"
    schema = [{"name": "k", "type": "int64", "sort_order": "ascending"}]
    schema.append({"name": "v", "type": "int64"})
    for name in ("built", "written"):
        attributes = {"dynamic": True, "schema": schema}
        client.create("table", f"{root}/{name}", attributes=attributes)
    built_reference.finish(client, f"{root}/built", "//home/source", ("k",))
    client.link(f"{root}/built", link)
    references = {"titles": link, "prices": written}
    settings = replace(context.settings, references=references)
    assert mounting.closed(client, settings) == [
        f"reference 'titles' {link} is unmounted, run: yt mount-table {link} --freeze --sync",
        f"reference 'prices' {written} is unmounted, run: yt mount-table {written} --sync",
    ]
    client.mount_table(link, freeze=True, sync=True)
    client.mount_table(written, sync=True)
    assert mounting.closed(client, settings) == []
    # A small static table is read whole, and nobody can mount it.
    client.remove(written)
    client.create("table", written, attributes={"schema": schema})
    assert mounting.closed(client, settings) == []


def test_the_record_of_a_job_names_its_references(context_of: ContextOf, root: str) -> None:
    """So `why` and `metrics` know them without the repository."""
    context = context_of("transactional")
    settings = replace(context.settings, references={"titles": f"{root}/titles"})
    job = replace(context.job, references={"titles": context.job.queue})
    record = job_record.record_of(replace(context, settings=settings, job=job), (), {})
    assert job_record.settings_of(record, "c").references == settings.references
    assert [*job_record.job_of(record).references] == ["titles"]
    del record["references"]  # of an older version
    assert job_record.settings_of(record, "c").references == {}
