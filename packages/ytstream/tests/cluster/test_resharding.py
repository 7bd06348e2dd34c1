"""Keys as YTsaurus compares them, and the commands that cut a table."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from yt import yson

from minicluster.testing import Running
from tests.support.helpers import ContextOf
from ytstream.cluster import resharding
from ytstream.cluster.client import Client
from ytstream.schema.columns import Column, resolved
from ytstream.schema.table_schema import table_schema

COLUMNS = resolved(
    "keys",
    [
        Column("text", "utf8", key=True),
        Column("number", "int64", key=True),
        Column("unsigned", "uint64", key=True),
        Column("bytes", "string", key=True),
        Column("is", "bool", key=True),
        Column("size", "double", key=True),
        Column("at", "timestamp", key=True),
        Column("value", "int64"),
    ],
)
KEYS: list[tuple[Any, ...]] = [
    (),
    (None,),
    (None, -1),
    ("", None, None, None, None, None, None),
    ("a",),
    ("a", -(2**63)),
    ("a", 7, 2**64 - 1, b"\x00", None, None, None),
    ("a", 7, 2**64 - 1, b"\x001", False, -0.5, 1_704_067_200_000_000),
    ("a", 7, 2**64 - 1, b"\xff$(id)", True, 1.5, 0),
    ("a b'c\"d\\ `e` !f %g\n", 0),
    ("z", 0),
    ("ы", 0),
    ("\U0001f600", 0),
]
"""In the order of YTsaurus."""


def test_keys_compare_as_on_the_cluster() -> None:
    made = [resharding.key(values) for values in KEYS]
    assert sorted(made) == made


def test_a_key_of_the_cluster_and_one_of_spark_are_the_same() -> None:
    of_the_cluster = [yson.YsonEntity(), yson.YsonUnicode("ы"), yson.YsonUint64(3), "a"]
    assert resharding.key(of_the_cluster) == resharding.key([None, "ы", 3, bytearray(b"a")])


def _run(command: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "YT_TOKEN": "any"}
    done = subprocess.run(
        ["bash", "-ec", command], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.thorough
@pytest.mark.slow
def test_pasted_into_a_shell_the_commands_cut_at_these_very_keys(
    client: Client, cluster: Running, context_of: ContextOf, root: str
) -> None:
    """Quotes, bytes that are no text, numbers with a sign and without, and nulls."""
    settings = context_of("transactional").settings
    path = f"{root}/sorted"
    schema = table_schema(COLUMNS).to_yson_type()
    client.create("table", path, recursive=True, attributes={"dynamic": True, "schema": schema})
    client.mount_table(path, sync=True)
    wanted = [resharding.key(values) for values in KEYS]
    _run(resharding.by_pivots(settings, path, COLUMNS, wanted))
    found = client.get(f"{path}/@pivot_keys")
    assert [resharding.key(pivot) for pivot in found] == wanted
    assert client.get(f"{path}/@tablet_state") == "mounted"
    config = {"enable_auto_reshard": False, "enable_auto_tablet_move": True}
    assert client.get(f"{path}/@tablet_balancer_config") == config


def test_an_ordered_table_is_cut_by_a_number(context_of: ContextOf) -> None:
    settings = context_of("transactional").settings
    lines = resharding.by_count(settings, "//home/a table", 12).splitlines()
    assert [line.endswith(" &&") for line in lines] == [True, True, False]
    assert [shlex.split(line.removesuffix(" &&"))[3:] for line in lines] == [
        ["unmount-table", "//home/a table", "--sync"],
        ["reshard-table", "//home/a table", "--tablet-count", "12", "--sync"],
        ["mount-table", "//home/a table", "--sync"],
    ]
