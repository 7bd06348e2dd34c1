"""Which version of a state can be loaded, whatever files are damaged or gone; no JVM."""

from __future__ import annotations

import pytest

from ytstream.recovery.state_files import StatePartition, newest

CHANGES, SNAPSHOTS = range(3, 9), (2, 4, 7)
"""Changes of versions 3 to 8, snapshots of 2, 4 and 7."""


def _partition(number: int = 0) -> StatePartition:
    path = f"state/0/{number}"
    return StatePartition(
        path,
        {one: f"{path}/{one}.changelog" for one in CHANGES},
        {one: f"{path}/{one}.zip" for one in SNAPSHOTS},
    )


@pytest.mark.parametrize(
    ("damaged", "version"),
    [
        ((), 8),
        (("0/7.zip",), 8),
        (("0/7.zip", "1/4.zip"), 8),
        (("0/8.changelog",), 7),
        (("0/8.changelog", "0/7.changelog"), 7),  # its snapshot is enough
        (("1/8.changelog", "0/7.zip"), 7),
        (("0/6.changelog",), 8),  # the snapshot of 7 is behind it
        (("0/6.changelog", "0/7.zip"), 5),
        (("0/6.changelog", "0/7.zip", "1/5.changelog"), 4),
        (("0/2.zip", "0/4.zip", "0/7.zip"), 0),
        (("0/2.zip", "0/3.changelog", "0/8.changelog"), 7),
    ],
)
def test_the_newest_version_that_all_partitions_can_load(
    damaged: tuple[str, ...], version: int
) -> None:
    paths = {f"state/0/{one}" for one in damaged}
    found = [_partition(0), _partition(1)]
    assert newest(found, 8, lambda path: path not in paths) == version


def test_a_partition_without_files_has_only_the_empty_state() -> None:
    empty = StatePartition("state/0/1", {}, {})
    assert newest([_partition(), empty], 8, lambda _: True) == 0
    young = StatePartition("state/0/0", {1: "1.changelog", 2: "2.changelog"}, {})
    assert newest([young], 2, lambda _: True) == 2
    assert newest([young, empty], 2, lambda _: True) == 0
