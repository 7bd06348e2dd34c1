"""What archives take of an account until their periods are complete."""

from collections.abc import Iterator

from ..cluster import account_usage
from ..cluster.client import facts
from ..job import JobContext
from .job_objects import queue_tablets

_MOST_NODES = 50_000
"""The nodes of a folder by default (YTsaurus, server/cypress_server/config.cpp,
max_node_child_count)."""


def remarks(context: JobContext) -> Iterator[str]:
    """Yield how many pieces of each archive may wait at a time, and the quota that there is."""
    settings = context.settings
    for name, archive in context.job.archives.items():
        batches = round((archive.seconds + archive.lateness_seconds) / settings.trigger_seconds)
        tasks = sum(queue_tablets(context.client, settings).values())
        yield (
            f"{name}: up to {batches} pieces wait for the table of a period, with up to "
            f"{batches * tasks} chunks until it is merged{_quota(context, name)}"
        )
        if batches > _MOST_NODES:
            yield (
                f"{name}: a folder has at most {_MOST_NODES} nodes by default: choose a longer "
                "trigger_seconds, or shorter periods"
            )


def _quota(context: JobContext, name: str) -> str:
    found = facts(context.client, context.settings.outputs[name], ["account"]) or {}
    usage = account_usage.usage(context.client, str(found.get("account", "")))
    chunks = next((one for one in usage if one.resource == "chunk_count"), None)
    return "" if chunks is None else f"; the account {chunks.account} has used {chunks}"
