"""The connection to the cluster: the one place that knows ytsaurus-client's settings and errors."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yt.wrapper as yt
from yt.common import YtError

from .errors import JobError, RestartableError
from .settings import Settings, token

_RETRIES = {"count": 3, "backoff": {"policy": "constant_time", "constant_time": 1_000}}

#: Codes of YtError (yt/yt/core/misc, yt/yt/client/security_client): what cannot be cured by
#: waiting.
_AUTHENTICATION, _AUTHORIZATION = 900, 901


def connect(settings: Settings) -> Any:
    """A client of the cluster that has answered once.

    Raises JobError when the proxy cannot be reached or refuses the token.
    """
    # It logs each retry with all headers; what is raised is explained.
    logging.getLogger("Yt").setLevel(logging.CRITICAL)
    client = yt.YtClient(
        proxy=settings.proxy,
        token=token(settings),
        config={
            # The defaults try for two minutes before they say that nobody is there.
            "proxy": {"retries": _RETRIES, "request_timeout": 20_000, "connect_timeout": 5_000},
            "dynamic_table_retries": _RETRIES,
            # A lost ping is reported to the supervisor, not raised in whichever thread runs.
            "ping_failed_mode": "pass",
        },
    )
    with explained(settings):
        client.get("//sys/@cluster_name")
    return client


@contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Turn ytsaurus-client's errors into one line each.

    Raises JobError for what a person has to cure, RestartableError for what time may.
    """
    try:
        yield
    except (YtError, OSError) as error:
        raise _explanation(error, settings.proxy) from error


def _explanation(error: Exception, proxy: str) -> Exception:
    line = first_line(error)
    has_code = getattr(error, "contains_code", lambda code: False)
    if isinstance(error, yt.errors.YtTokenError) or has_code(_AUTHENTICATION):
        return JobError(f"{proxy} refuses the token: {line}", "renew YT_TOKEN")
    # Missing, full or not for this user: the cluster's messages name all of them like this.
    named = re.search(r'(account|bundle|medium) "', line, re.IGNORECASE)
    if named and re.search("no such|denied|limit|not allowed", line, re.IGNORECASE):
        setting = {"bundle": "tablet_cell_bundle"}.get(named[1].lower(), named[1].lower())
        remedy = f"correct `{setting}` in the configuration, or ask its owner for its use"
        return JobError(f"{proxy}: {line}", remedy)
    if has_code(_AUTHORIZATION):
        remedy = "ask the owner of that path for the permission named"
        return JobError(f"not permitted on {proxy}: {line}", remedy)
    if isinstance(error, yt.errors.YtHttpResponseError | yt.errors.YtResponseError):
        return RestartableError(f"{proxy}: {line}")
    return JobError(
        f"cannot reach the cluster at {proxy}: {line}",
        "check `proxy` in the configuration and that the cluster is up",
    )


def first_line(error: BaseException) -> str:
    """The innermost message: of a YtError's inner errors, or of the causes of any other error."""
    current: Any = error
    while inner := _inner(current):
        current = inner
    said = current if isinstance(current, dict) else vars(current)
    # urllib3's own text names objects in memory, the system's says "Connection refused".
    text = said.get("message") or getattr(current, "strerror", None) or str(current)
    lines = str(text).strip().splitlines()
    return re.sub(r"\s+", " ", lines[0]) if lines else type(error).__name__


def _inner(error: Any) -> Any:
    # Inner errors are YtErrors or, as they came over the wire, maps.
    if isinstance(error, dict | YtError):
        inner = error.get("inner_errors") if isinstance(error, dict) else error.inner_errors
        return inner[0] if inner else None
    inner = error.__cause__ or error.__context__
    return None if isinstance(inner, TypeError) else inner  # urllib3 tries two ways to read


def cluster_name(client: Any) -> str:
    """The name by which consumers and Spark's offsets know the cluster."""
    return str(client.get("//sys/@cluster_name"))
