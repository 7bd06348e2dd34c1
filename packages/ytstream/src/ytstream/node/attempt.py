"""Run at the start of each attempt of the driver, by whichever Python the node has.

Counts the attempts that have failed within the last hour, waits the longer the more there were, and
ends the operation when there were too many. Exit codes: 0 go on, 3 the operation was ended, 4 the
job cannot run here and the cluster could not be told, 9 the cluster could not be asked.
"""
# For Python 3.6 too: an old interpreter is what this has to report.

import calendar
import os
import sys
import time
from typing import Any, Callable, Iterable, Mapping, Optional  # noqa: UP035

PERIOD_SECONDS = 3600
MOST_FAILURES = 10
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5, 300
NEEDED = (3, 11)
PACKAGES = ("packaging", "yt.wrapper", "yt_yson_bindings")


def pause_after(failures: int) -> int:
    """Return how long the next attempt waits."""
    if not failures:
        return 0
    return int(min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (failures - 1)))


def recent(finish_times: Iterable[str], now: float) -> int:
    """Return how many of these times, such as 2026-11-23T20:00:00.5Z, are within the period."""
    stamps = [calendar.timegm(time.strptime(one[:19], "%Y-%m-%dT%H:%M:%S")) for one in finish_times]
    return sum(stamp > now - PERIOD_SECONDS for stamp in stamps)


def problem(python: str, found: str) -> Optional[str]:  # noqa: UP045
    """Return why the job cannot run with the Python that it names; None where nothing is known.

    This runs in ``found``, another one where the named one does not start. That of an archive is
    unpacked later.
    """
    if python.startswith("."):
        return None
    if python != found:
        return f"there is no {python} on this node: correct python under [submit]"
    name = f"the Python of this node, {python},"
    if sys.version_info < NEEDED:
        needed, here = (".".join(map(str, v[:2])) for v in (NEEDED, sys.version_info))
        return (
            f"{name} is {here}, and the job needs {needed}: name another as python under [submit]"
        )
    missing = []
    for package in PACKAGES:
        try:
            __import__(package)
        except ImportError:
            missing.append(package.split(".")[0])
    if not missing:
        return None
    what = " and ".join(missing)
    return f"{name} lacks {what}: ask the administrators, or bring another by archive or image"


def client_of(environment: Mapping[str, str]) -> Any:
    """Return a client that tries a few times."""
    # Inside a job the client refuses every request unless this is set.
    os.environ["YT_ALLOW_HTTP_REQUESTS_TO_YT_FROM_JOB"] = "1"
    import yt.wrapper

    retries = {"count": 3, "backoff": {"policy": "constant_time", "constant_time": 1000}}
    return yt.wrapper.YtClient(
        proxy=environment["YTSTREAM_PROXY"],
        token=environment["YT_SECURE_VAULT_YT_TOKEN"],
        config={"proxy": {"retries": retries, "request_timeout": 20000}},
    )


def begin(
    environment: Mapping[str, str], client: Any, wait: Callable[[float], None] = time.sleep
) -> int:
    """Wait, and return 0; or end the operation, and return 3."""
    operation = environment["YT_OPERATION_ID"]
    listed = client.list_jobs(operation_id=operation, job_state="failed", limit=200)["jobs"]
    failures = recent([job["finish_time"] for job in listed if job.get("finish_time")], time.time())
    if failures >= MOST_FAILURES:
        why = f"gave up: the driver has failed {failures} times within an hour"
        print(f"attempt: {why}")
        client.abort_operation(operation, message=why)
        return 3
    pause = pause_after(failures)
    if pause:
        print(f"attempt: {failures} failures within the last hour; waiting {pause} s")
        sys.stdout.flush()
        wait(pause)
    return 0


def main(found: str) -> int:
    """Check the interpreter, then the operation."""
    why = problem(os.environ.get("YTSTREAM_PYTHON", found), found)
    if why is not None:
        print(f"attempt: {why}")
    try:
        client = client_of(os.environ)
        if why is not None:
            client.abort_operation(os.environ["YT_OPERATION_ID"], message=why)
            return 3
        return begin(os.environ, client)
    except Exception as error:
        line = str(error).split("\n")[0]
        print(f"attempt: cannot ask the cluster: {line}")
        return 4 if why is not None else 9


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
