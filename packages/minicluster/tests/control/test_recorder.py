"""The state after each request of chosen methods, and a folder that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster import testing
from minicluster.client import ControlError
from ytstream.cluster.client import client_of


def test_each_recorded_state_is_that_of_its_request(tmp_path: Path) -> None:
    with testing.start(rpc_proxies=0) as cluster:
        control, client = cluster.client, client_of(cluster.http, "", patient=False)
        control.record(str(tmp_path), ["set"])
        for value in (1, 2, 3):
            client.set("//tmp/@value", value)
            client.get("//tmp/@value")
        control.record(None)
        client.set("//tmp/@value", 4)
        numbers = [entry.n for entry in control.journal("set")]
        assert {file.name for file in tmp_path.iterdir()} == {f"{n}.state" for n in numbers[:3]}
        control.load(str(tmp_path / f"{numbers[1]}.state"))
        assert client.get("//tmp/@value") == 2


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with (
        testing.start(rpc_proxies=0) as cluster,
        pytest.raises(ControlError, match="must be a folder that exists"),
    ):
        cluster.client.record(str(tmp_path / "none"), ["set"])
