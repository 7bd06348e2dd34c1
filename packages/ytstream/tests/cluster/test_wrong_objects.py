"""Something else is where the configuration has an object of the job: no retry helps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.helpers import ContextOf
from tests.support.status_steps import invoke
from ytstream.job import JobContext


def _folder(context: JobContext) -> str:
    return context.settings.ledger.rpartition("/")[0]


def _put_a_table(context: JobContext) -> None:
    context.client.create("table", _folder(context), recursive=True, force=True)


def _put_a_broken_link(context: JobContext) -> None:
    path, target = _folder(context), f"{_folder(context)}-target"
    context.client.create("map_node", target, recursive=True)
    attributes = {"target_path": target}
    context.client.create("link", path, recursive=True, force=True, attributes=attributes)
    context.client.remove(target)


def _put_a_static_ledger(context: JobContext) -> None:
    context.client.create("table", context.settings.ledger, recursive=True)


@pytest.mark.parametrize(
    ("put", "command", "said"),
    [
        (_put_a_table, "provision", "cannot have children\n  -> a folder must be there"),
        (_put_a_broken_link, "provision", "its target is missing"),
        (_put_a_static_ledger, "page", "is not dynamic\n  -> the job needs a dynamic table there"),
    ],
)
def test_a_wrong_object_is_named_with_what_to_do(
    context_of: ContextOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], put: Callable[[JobContext], None], command: str, said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    context = context_of("transactional")
    put(context)
    assert invoke(context, tmp_path, command=command) == 1
    error = capsys.readouterr().err
    assert "error [not_provisioned]: " in error
    assert said in error
    assert "try again" not in error
