"""Run at the start of each attempt of the driver, by whichever Python the node has.

Counts the attempts that have failed within the last hour, waits the longer the more there were, and
ends the operation when there were too many. Exit codes: 0 go on, 3 the operation was ended, 4 the
job cannot run here and the cluster could not be told, 9 the cluster could not be asked.
"""
# For old interpreters too: their age is what is said about them.

import calendar
import os
import sys
import time

PERIOD_SECONDS = 3600
MOST_FAILURES = 10
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5, 300
NEEDED = (3, 11)
PACKAGES = ("packaging", "yt.wrapper", "yt_yson_bindings")


def pause_after(failures):
    """Return how long the next attempt waits."""
    if not failures:
        return 0
    return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (failures - 1))


def recent(finish_times, now):
    """Return how many of these times, such as 2026-11-23T20:00:00.5Z, are within the period."""
    stamps = [calendar.timegm(time.strptime(one[:19], "%Y-%m-%dT%H:%M:%S")) for one in finish_times]
    return sum(stamp > now - PERIOD_SECONDS for stamp in stamps)


def problem(python, found):
    """Return why the job cannot run with the Python that it names; None where nothing is known.

    This runs in ``found``, another one where the named one does not start. That of an archive is
    unpacked later.
    """
    if python.startswith("."):
        return None
    if python != found:
        return "there is no %s on this node: correct python under [submit]" % python
    name = "the Python of this node, %s," % python
    if sys.version_info < NEEDED:
        needed, found = "%d.%d" % NEEDED, "%d.%d" % sys.version_info[:2]
        return "%s is %s, and the job needs %s: name another as python under [submit]" % (
            name, found, needed)  # fmt: skip
    missing = []
    for package in PACKAGES:
        try:
            __import__(package)
        except ImportError:
            missing.append(package.split(".")[0])
    if not missing:
        return None
    return "%s lacks %s: ask the cluster's administrators, or bring another by archive or image" % (
        name, " and ".join(missing))  # fmt: skip


def client_of(environment):
    """Return a client that tries a few times."""
    import yt.wrapper

    retries = {"count": 3, "backoff": {"policy": "constant_time", "constant_time": 1000}}
    return yt.wrapper.YtClient(
        proxy=environment["YTSTREAM_PROXY"],
        token=environment["YT_SECURE_VAULT_YT_TOKEN"],
        config={"proxy": {"retries": retries, "request_timeout": 20000}},
    )


def begin(environment, client, wait=time.sleep):
    """Wait, and return 0; or end the operation, and return 3."""
    operation = environment["YT_OPERATION_ID"]
    listed = client.list_jobs(operation_id=operation, job_state="failed", limit=200)["jobs"]
    failures = recent([job["finish_time"] for job in listed if job.get("finish_time")], time.time())
    if failures >= MOST_FAILURES:
        why = "gave up: the driver has failed %d times within an hour" % failures
        print("attempt: %s" % why)
        client.abort_operation(operation, message=why)
        return 3
    pause = pause_after(failures)
    if pause:
        print("attempt: %d failures within the last hour; waiting %d s" % (failures, pause))
        sys.stdout.flush()
        wait(pause)
    return 0


def main(found):
    """Look at the interpreter, then at the operation."""
    why = problem(os.environ.get("YTSTREAM_PYTHON", found), found)
    if why is not None:
        print("attempt: %s" % why)
    try:
        client = client_of(os.environ)
        if why is not None:
            client.abort_operation(os.environ["YT_OPERATION_ID"], message=why)
            return 3
        return begin(os.environ, client)
    except Exception as error:
        print("attempt: cannot ask the cluster: %s" % str(error).split("\n")[0])
        return 4 if why is not None else 9


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
