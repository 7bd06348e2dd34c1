"""How a job ends its own operation.

SPYT's wrapper turns every exit code of Python into 1, and YTsaurus starts the next attempt at once.
What only a person can fix would come back with each of them, and two drivers that supersede each
other would do so for ever.
"""

import os
from collections.abc import Mapping
from contextlib import suppress

from yt.common import YtError

from ..errors import JobError, SupersededError
from ..log import say
from . import operation
from .client import client_of


def end(error: JobError, proxy: str | None, environment: Mapping[str, str] = os.environ) -> None:
    """End the operation that this process is a job of, with the reason; nothing elsewhere.

    An attempt that a later one of the same operation has superseded leaves that one alone. Where
    the cluster does not answer, YTsaurus starts the job again, and it comes here again.
    """
    id_ = operation.own(environment)
    # Where the configuration could not be read, `submit` has said which cluster it is.
    proxy = proxy or environment.get("YTSTREAM_PROXY")
    is_replaced = isinstance(error, SupersededError) and operation.id_in(error.by) == id_
    if id_ is None or proxy is None or is_replaced:
        return
    with suppress(YtError, OSError):
        token = environment.get("YT_SECURE_VAULT_YT_TOKEN") or environment.get("YT_TOKEN", "")
        say(f"ending operation {id_}: a retry would fail the same way")
        client_of(proxy, token).abort_operation(id_, message=f"the job has ended itself: {error}")
