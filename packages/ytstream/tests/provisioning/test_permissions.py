"""`check --permissions`: asked for each right, of a user who lacks just that one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import ContextOf, refusal
from tests.support.project import ROOT
from tests.support.static_outputs import static
from tests.support.status_steps import invoke
from ytstream import cli
from ytstream.job import JobContext
from ytstream.provisioning import permissions
from ytstream.provisioning.permissions import JOB, OPERATOR, REHEARSAL, ROLES, Permission

USER = "robot-bids"


def _wanted(context: JobContext, role: str) -> list[Permission]:
    return permissions.rights(role, context.job, context.settings)


def _grant(context: JobContext, wanted: Iterable[Permission], *paths: str) -> None:
    """Give the user these rights of the paths, by default of all, and none of a folder above."""
    by_path: dict[str, list[str]] = {}
    for right in wanted:
        by_path.setdefault(right.path, []).append(right.permission)
    for path in paths or {one.path for one in _wanted(context, OPERATOR)}:
        if context.client.exists(path):
            given = by_path.get(path, [])
            entry = {"action": "allow", "subjects": [USER], "permissions": given}
            context.client.set(f"{path}/@acl", [entry] if given else [])
            context.client.set(f"{path}/@inherit_acl", False)


def _connected(context: JobContext) -> Iterator[JobContext]:
    """Make the user, and undo at the end what was done to objects of all tests."""
    client: Any = context.client
    if not client.exists(f"//sys/users/{USER}"):
        client.create("user", attributes={"name": USER})
    yield context
    for path in {one.path for one in _wanted(context, OPERATOR) if "//sys" in one.path}:
        client.set(f"{path}/@acl", [])
        client.set(f"{path}/@inherit_acl", True)


@pytest.fixture
def plain(provisioned_of: ContextOf) -> Iterator[JobContext]:
    """Connect a job as the template makes it."""
    yield from _connected(provisioned_of("transactional"))


@pytest.fixture
def job(provisioned_of: ContextOf) -> Iterator[JobContext]:
    """Connect a job with every kind of object, each with a list of rights of its own."""
    context = provisioned_of("transactional", "join", 2, rejects=True)
    settings = replace(context.settings, account="default", tablet_cell_bundle="default")
    shown = {**settings.outputs, "output": f"{settings.ledger}-tables"}
    settings = replace(settings, outputs=shown)
    context = replace(context, settings=settings, job=static(context.job, "output"))
    client = context.client
    for path in (shown["output"], settings.staging):
        client.create("map_node", path, recursive=True)
    yield from _connected(context)


def test_a_role_has_what_it_needs_and_no_more(job: JobContext) -> None:
    rehearsal, running, operator = ({*_wanted(job, role)} for role in (REHEARSAL, JOB, OPERATOR))
    assert {right.permission for right in rehearsal} == {"read"}
    assert rehearsal < running < operator
    assert {right.permission for right in running} == {"read", "write", "remove", "use"}
    queues = {right.permission for right in running if right.path in job.settings.queues}
    assert queues == {"read"}
    more = {right.permission for right in operator - running}
    assert more == {"mount", "use", "register_queue_consumer"}


@pytest.mark.parametrize(
    "role", [REHEARSAL, pytest.param(JOB, marks=pytest.mark.journey), OPERATOR]
)
def test_each_right_is_missed_when_it_is_not_there(job: JobContext, role: str) -> None:
    wanted = _wanted(job, role)
    _grant(job, wanted)
    said = permissions.check(job, role, USER)
    assert said.endswith(f"{USER} has the {len(wanted)} rights that the {role} needs")
    for left_out in wanted:
        _grant(job, [right for right in wanted if right != left_out], left_out.path)
        refused = refusal(lambda: permissions.check(job, role, USER))
        _grant(job, wanted, left_out.path)
        first, line, owners, command = refused.splitlines()
        assert first == f"{USER} lacks 1 right of {len(wanted)} that the {role} needs:"
        what = f"{left_out.permission} on {left_out.object} {left_out.path}: {left_out.why}"
        assert line.strip() == what
        assert owners == "  -> let the owners run:"
        entry = f'{{action=allow; subjects=["{USER}"]; permissions=[{left_out.permission}]}}'
        assert command.strip() == f"yt set {left_out.path}/@acl/end '{entry}'"


def test_what_is_not_there_is_asked_of_the_folder_above(job: JobContext) -> None:
    _grant(job, wanted := _wanted(job, JOB))
    gone = job.settings.checkpoint
    job.client.remove(gone, recursive=True)
    above = gone.rpartition("/")[0]
    said = refusal(lambda: permissions.check(job, JOB, USER))
    assert f"remove on checkpoint {gone} (not there; asked of {above}): " in said
    more = [Permission("read", "", above, ""), Permission("remove", "", above, "")]
    _grant(job, [right for right in (*wanted, *more) if right.path != gone])
    assert "has the" in permissions.check(job, JOB, USER)
    job.client.create("map_node", gone)


def test_the_commands_that_it_prints_give_the_rights(job: JobContext) -> None:
    """As YSON that the cluster takes; a line of several rights of a path is one command."""
    from yt.yson import loads

    _grant(job, [])
    said = refusal(lambda: permissions.check(job, JOB, USER))
    commands = re.findall(r"^  yt set (\S+)/@acl/end '(.*)'$", said, re.MULTILINE)
    assert len(commands) == len({right.path for right in _wanted(job, JOB)})
    for path, entry in commands:
        job.client.set(f"{path}/@acl/end", loads(entry.encode()))
    assert "has the" in permissions.check(job, JOB, USER)


def test_the_page_has_the_table(job: JobContext) -> None:
    """Each right by role, permission and object; the page names queues and outputs once."""
    page = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    part = page.partition("## Permissions")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| `([\w, `]+)` \| (.+?) \|", part, re.MULTILINE)
    shown = {
        (role, permission, name)
        for role, listed, names in rows
        for permission in listed.split("`, `")
        for name in names.split(", ")
    }
    apart = {name: f"//home/{name}/table" for name in job.settings.outputs}
    settings = replace(job.settings, ledger="//home/ledger/ledger", outputs=apart)
    job = replace(job, settings=settings)
    found: set[tuple[str, str, str]] = set()
    for role in (REHEARSAL, JOB, OPERATOR):
        for right in _wanted(job, role):
            kind = right.object.removeprefix("the folder of ")
            name = {"rejected": "output", "output": "static output"}.get(kind, kind)
            name = f"folder of {name}" if kind != right.object else name
            if not {(one, right.permission, name) for one in ROLES} & found:
                found.add((role, right.permission, name))
    assert shown == found


def test_the_command_asks_for_the_rights_alone(
    plain: JobContext, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does not look at tables first: a user without rights could not read them."""
    plain.client.remove(plain.settings.outputs["output"])
    assert invoke(plain, tmp_path, "--permissions", command="check") == 0
    assert "root has the" in capsys.readouterr().out
    words = ["--permissions", "rehearsal", "--user", USER]
    _grant(plain, [])
    assert invoke(plain, tmp_path, *words, command="check") == 1
    assert "lacks 2 rights of 2 that the rehearsal needs" in capsys.readouterr().err
    assert invoke(plain, tmp_path, *words[:-1], "nobody", command="check") == 1
    assert "the cluster has no user 'nobody'" in capsys.readouterr().err
    assert invoke(plain, tmp_path, "--user", USER, command="check") == 1
    assert "--user goes with --permissions" in capsys.readouterr().err


def test_another_role_is_wrong_usage() -> None:
    with pytest.raises(SystemExit) as caught:
        cli.run("bids", lambda: pytest.fail("imported"), ["check", "--permissions", "root"])
    assert caught.value.code == 2
