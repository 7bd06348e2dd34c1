"""`replay-rejected` into an output with a key of its own asks for a choice; no JVM."""

from __future__ import annotations

from dataclasses import replace

from tests.support.helpers import ContextOf, refusal
from ytstream.schema.columns import Column
from ytstream_tools.replay import rejected_replay


def test_an_output_with_a_key_of_its_own_asks_for_a_choice(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional", "map", 1, rejects=True)
    rejected_replay.verify_keys(context, replace=False)
    outputs = {**context.job.outputs, "newest": (Column("id", "utf8", key=True),)}
    job = replace(context.job, outputs=outputs)
    settings = replace(
        context.settings, outputs={**context.settings.outputs, "newest": "//home/newest"}
    )
    keyed = replace(context, job=job, settings=settings)
    said = refusal(lambda: rejected_replay.verify_keys(keyed, replace=False))
    assert "an older row over a newer one: //home/newest has a key of its own" in said
    rejected_replay.verify_keys(keyed, replace=True)
