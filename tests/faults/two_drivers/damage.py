"""`tests.faults.two_drivers.damage`: a file of a stopped job's checkpoint is damaged.

Each case starts the job, calls `rewind state` as its owner does, and starts it again. Printed: what
the job and the command said, and how many rows are lost or repeated.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tests.faults.two_drivers.__main__ import console, run
from tests.faults.two_drivers.job_site import PACKAGE, EndedError, Site, SpoiltError
from tests.faults.two_drivers.play import Result
from tests.faults.variants import Variant
from tests.support.sparks import OLDEST
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import positions
from ytstream.recovery.checkpoint_repair import path_of
from ytstream_tools.demo.job_process import environment, run_command

BATCHES, ROWS, SINCE_SNAPSHOT = 15, 200, 3
"""Batches before the damage, of so many rows, and since the newest snapshot: the checkpoint keeps
the last ten."""
Change = Callable[[bytes], bytes | None]
"""What changes the bytes of a file; None: it is gone."""


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x5A]) + data[middle + 1 :]


def _gone(_: bytes) -> None:
    return None


@dataclass(frozen=True)
class Damage:
    """What happens to a file."""

    name: str
    of: str
    """"changes", "snapshot" or "sst" of partition 0, "commits" or "offsets"; "folder": all files of
    the partition."""
    change: Change = _gone
    newer: int = 0
    """How many newer files of its kind there are."""
    again: int | None = 0
    """How many batches `rewind state` executes again; None: it refuses."""
    harmless_since: tuple[int, int] = (9, 9)
    """The Spark from which on the job starts without a repair."""


DAMAGES = (
    Damage("byte-of-newest-changes", "changes", _flipped, again=1),
    Damage("newest-changes-gone", "changes", again=1),
    Damage("byte-of-older-changes", "changes", _flipped, newer=2, again=3),
    Damage("byte-of-snapshot", "snapshot", _flipped, harmless_since=(4, 2)),
    Damage("snapshot-gone", "snapshot", harmless_since=(3, 5)),
    Damage("byte-of-sst", "sst", _flipped, harmless_since=(4, 2)),
    Damage("sst-gone", "sst", harmless_since=(4, 2)),
    Damage("byte-of-commit", "commits", _flipped, harmless_since=(3, 5)),
    Damage("commit-gone", "commits", harmless_since=(3, 5)),
    Damage("folder-gone", "folder", again=None),
)
VARIANTS = (
    *(Variant("transactional", one, 1) for one in ("window", "aggregate", "deduplicate")),
    Variant("transactional", "sessions", 1),
    Variant("transactional", "window", 2),
    *(Variant("transactional", one, 1, spark=OLDEST) for one in ("window", "aggregate")),
)


@dataclass(frozen=True)
class Case:
    """One damage to one job."""

    damage: Damage
    variant: Variant

    @property
    def name(self) -> str:
        """The name that ``--only`` takes."""
        return f"{self.variant.name}:{self.damage.name}"


CASES = [
    Case(damage, variant._replace(has_snapshots=True)) for variant in VARIANTS for damage in DAMAGES
]


def play(case: Case, site: Site) -> Result:
    """Damage the file; repair it if the job says so; count all rows."""
    _ready(site)
    path = _damaged(site, case.damage)
    site.fill(ROWS)
    said = [f"{path}:"]
    ended = _start(site, f"{case.name}.damaged.log")
    said += [ended.partition("->")[0].strip() or "goes on"]
    if ended:
        said += _repaired(site, case.damage)
        site.start(f"{case.name}.log")
    for step in (site.drain, site.follow):
        try:
            step()
        except EndedError as error:
            if ended or f"[{ErrorCode.STATE_DAMAGED}]" not in str(error):
                raise
            # RocksDB reads a block when it needs it: a later batch may be the first one.
            ended = str(error)
            said += [ended.partition("->")[0].strip(), *_repaired(site, case.damage, is_late=True)]
            site.start(f"{case.name}.log")
            site.drain()
            if step == site.follow:
                site.close()
    console.print(f"{case.name}:", *said, sep="\n  ")
    what = said[-1] if ended else "the job goes on"
    return Result(site.count(), what, may_repeat=case.damage.again is None)


def _ready(site: Site) -> None:
    """Bring the site to a job that has stopped after so many batches."""
    if site.restore():
        return
    driver = site.start("before-the-damage.log")
    site.wait(driver.has_started, driver)
    while site.batches() < BATCHES:
        site.fill(ROWS)
        site.drain()
    site.wait(lambda: len(_files(site, "snapshot")) > 1, driver)
    run_command(PACKAGE, site.cluster.http, site.project, "stop", python=site.python)
    driver.wait()
    # Spark needs the last changes: no snapshot is as new.
    last = _head(site)[1]
    for partition in site.context.client.list(f"{_folder(site)}/state/0"):
        for path in _files(site, "snapshot", str(partition)):
            if _version(path) > last + 1 - SINCE_SNAPSHOT:
                site.context.client.remove(path)
    site.save()


def _damaged(site: Site, damage: Damage) -> str:
    """Damage a file; return its path."""
    client = site.context.client
    if damage.of == "folder":
        path = f"{_folder(site)}/state/0/0"
        client.remove(path, recursive=True)
        return path
    path = _files(site, damage.of)[damage.newer]
    data = damage.change(bytes(client.read_file(path).read()))
    client.remove(path)
    if data is not None:
        client.write_file(path, data)
    return path


def _start(site: Site, log: str) -> str:
    """Start the job; return what it ends with, "" if it comes to a batch. Raises SpoiltError."""
    driver, before = site.start(log), site.batches()
    with suppress(EndedError):
        site.wait(lambda: site.batches() > before, driver)
        return ""
    if f"[{ErrorCode.STATE_DAMAGED}]" not in driver.tail():
        raise SpoiltError(f"the job ended with {driver.exit_code}:\n{driver.tail()}")
    return driver.tail()


def _repaired(site: Site, damage: Damage, *, is_late: bool = False) -> list[str]:
    """Call `rewind state`; return what it said. Raises SpoiltError if it is not as expected.

    How many batches it executes again after a damage that was found late depends on when it was.
    """
    rehearsed, done = (_rewind(site, "state", *words) for words in (["--dry-run"], []))
    lines = done.stdout.splitlines()
    found = None if done.returncode else sum(": as the ledger has it" in line for line in lines)
    is_expected = found == damage.again or (is_late and found is not None)
    if not is_expected or rehearsed.returncode != done.returncode:
        raise SpoiltError(f"rewind state: {done.returncode}, {found} batches\n{done.stdout}")
    if damage.again is None:
        done = _rewind(site, "earliest")
        lines += done.stdout.splitlines()
        if done.returncode:
            raise SpoiltError(f"rewind earliest: {done.returncode}\n{done.stdout}")
        return [*lines, "rewind earliest"]
    return [*lines, f"rewind state: {found} batches again"]


def _rewind(site: Site, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [site.python, "-m", PACKAGE, "rewind", *words],
        env=environment(site.cluster.http, site.project),
        cwd=site.project,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _head(site: Site) -> tuple[int, int]:
    """Return the folder of the checkpoint and the last batch in it, by the ledger."""
    context = site.context
    head = positions.read(context.client, context.settings).head
    if head is None or head.folder is None:
        raise SpoiltError("the ledger has no batch")
    return head.folder, head.batch


def _folder(site: Site) -> str:
    return path_of(site.context.settings, _head(site)[0])


_ENDS = {
    "changes": r"\.(changelog|delta)",
    **dict.fromkeys(("snapshot", "sst"), r"\.(zip|snapshot)"),
}


def _files(site: Site, of: str, partition: str = "0") -> list[str]:
    """Return the files of a kind up to the head's batch, the newest first."""
    client, (_, last) = site.context.client, _head(site)
    path, ends = f"{_folder(site)}/state/0/{partition}", _ENDS.get(of, "")
    if of in ("commits", "offsets"):
        path = f"{_folder(site)}/{of}"
    else:
        last += 1  # version N is the state after batch N - 1
    names = [str(name) for name in client.list(path)]
    found = [f"{path}/{name}" for name in names if re.fullmatch(rf"\d+{ends}", name)]
    found = sorted((one for one in found if _version(one) <= last), key=_version, reverse=True)
    if of != "sst":
        return found
    with zipfile.ZipFile(io.BytesIO(bytes(client.read_file(found[0]).read()))) as files:
        listed = json.loads(files.read("metadata").decode().partition("\n")[2])
    return [f"{path}/SSTs/{one['dfsSstFileName']}" for one in listed["sstFiles"]]


def _version(path: str) -> int:
    return int(path.rpartition("/")[2].partition(".")[0])


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when every damage was named, and every row is there as often as it has to be."""
    return run(__doc__, CASES, play, words)


if __name__ == "__main__":
    sys.exit(main())
