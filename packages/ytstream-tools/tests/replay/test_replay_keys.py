"""`replay-rejected` into an output with a key of its own asks for a choice; no JVM."""

from __future__ import annotations

from dataclasses import replace

from tests.support.helpers import ConnectionOf, refusal
from ytstream.schema.columns import Column
from ytstream_tools.replay import rejected_replay


def test_an_output_with_a_key_of_its_own_asks_for_a_choice(provisioned_of: ConnectionOf) -> None:
    connection = provisioned_of("transactional", "map", 1, rejects=True)
    rejected_replay.verify_keys(connection, replace=False)
    outputs = {**connection.job.outputs, "newest": (Column("id", "utf8", key=True),)}
    job = replace(connection.job, outputs=outputs)
    settings = replace(
        connection.settings, outputs={**connection.settings.outputs, "newest": "//home/newest"}
    )
    keyed = replace(connection, job=job, settings=settings)
    said = refusal(lambda: rejected_replay.verify_keys(keyed, replace=False))
    assert "an older row over a newer one: //home/newest has a key of its own" in said
    rejected_replay.verify_keys(keyed, replace=True)
