"""No value of a row and no secret comes out of a command for a person on call; no JVM.

The last word of a failed job, which `status` and `logs` print, is the job's own message: it may
name a key, so it is not among these.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.helpers import ContextOf
from tests.support.simulated_driver import BID
from tests.support.status_steps import head_of_batch, invoke, send, write_batches, write_rows
from ytstream.cluster.client import connect
from ytstream.ledger.ledger_rows import head_row
from ytstream.ownership import job_record
from ytstream_tools import __main__ as light

MARK = "MARKED-VALUE"
COMMANDS = (
    ("status",),
    ("status", "--json"),
    ("metrics", "--once"),
    ("why",),
    ("alerts",),
    ("page",),
    ("logs",),
    ("stop",),
    ("drain",),
)


def test_no_value_of_a_row_and_no_secret_comes_out(
    provisioned_of: ContextOf, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("YT_TOKEN", MARK)
    monkeypatch.chdir(tmp_path)
    context = provisioned_of("transactional", rejects=True)
    send(context, 4)
    texts = {name: MARK for name, value in BID.items() if isinstance(value, str)}
    assert texts
    client = connect(context.settings)
    client.insert_rows(context.settings.queues[0], [{**BID, **texts}] * 4)
    write_batches(context, range(1, 13), rejected={"too old": 2})
    write_rows(context, head_row(head_of_batch(context, 12)))
    job_record.write(context)
    said = ""
    for words in COMMANDS:
        invoke(context, tmp_path, *words[1:], command=words[0])
        shown = capsys.readouterr()
        assert shown.out + shown.err, words
        said += shown.out + shown.err
    folder = context.settings.ledger.rpartition("/")[0]
    assert light.main(["fleet", "--proxy", context.settings.proxy, "--under", folder]) == 0
    shown = capsys.readouterr()
    assert context.settings.ledger in shown.out
    said += shown.out + shown.err
    said += "".join(
        path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()
    )
    assert MARK not in said
