"""State files: what they may hold, and that a failed load changes nothing."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from minicluster import persist
from minicluster.cluster import Cluster
from minicluster.core.errors import YtError


def test_a_saved_state_is_loaded_as_it_was(cluster: Cluster, tmp_path: Path) -> None:
    cluster.cypress.set("//tmp/a", {"b": 1})
    tx = cluster.transactions.start(timeout_ms=60_000)
    cluster.cypress.remove("//tmp/a/b", tx=tx)
    waiting = cluster.transactions.start(timeout_ms=60_000)
    lock = cluster.cypress.lock("//tmp/a/b", tx=waiting, waitable=True)
    persist.save(cluster, str(tmp_path / "s"))
    other = Cluster()
    persist.load(other, str(tmp_path / "s"))
    assert other.cypress.get("//tmp/a") == {"b": 1}
    assert other.cypress.get("//tmp/a", tx=tx) == {}
    other.transactions.abort(tx)
    assert other.cypress.get(f"#{lock['lock_id']}/@state") == "acquired"
    assert cluster.cypress.get(f"#{lock['lock_id']}/@state") == "pending"
    assert other.clock.timestamp() > cluster.clock.last_timestamp


def test_leases_that_ran_out_since_the_state_was_saved_are_renewed(
    cluster: Cluster, tmp_path: Path
) -> None:
    tx = cluster.transactions.start(timeout_ms=10_000)
    tablet = cluster.tablet_transactions.start(timeout_ms=10_000)
    persist.save(cluster, str(tmp_path / "s"))
    for is_renewed in (True, False):
        other = Cluster()
        persist.load(other, str(tmp_path / "s"))
        other.clock.advance(20)  # as the wall clock does
        if is_renewed:
            other.renew_leases()
        other.pass_time(9)
        assert (tx in other.transactions.running) == is_renewed
        assert (other.tablet_transactions.find(tablet.id) is not None) == is_renewed


class Evil:
    """Runs a command when it is unpickled, if one lets it."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize("function", [os.system, eval, persist.save])
def test_a_state_file_runs_no_code(cluster: Cluster, tmp_path: Path, function: Any) -> None:
    trace = tmp_path / "trace"
    evil = Evil(function, f"open({str(trace)!r}, 'w')", f"touch {trace}")
    file = tmp_path / "s"
    file.write_bytes(persist.MAGIC + pickle.dumps({"name": evil}))
    with pytest.raises(YtError, match="does not belong to a state file"):
        persist.load(cluster, str(file))
    assert not trace.exists()


def test_a_dotted_name_is_no_way_out(cluster: Cluster, tmp_path: Path) -> None:
    """`minicluster.persist` imports os; protocol 4 can name os.system through it."""
    file = tmp_path / "s"
    name = b"\x8c\x13minicluster.persist\x8c\tos.system\x93"
    file.write_bytes(persist.MAGIC + b"\x80\x04" + name + b"\x8c\x04true\x85R.")
    with pytest.raises(YtError, match="does not belong to a state file"):
        persist.load(cluster, str(file))


@pytest.mark.parametrize("data", [b"", b"x", persist.MAGIC, persist.MAGIC + b"garbage"])
def test_broken_files(cluster: Cluster, tmp_path: Path, data: bytes) -> None:
    cluster.cypress.set("//tmp/x", 1)
    file = tmp_path / "s"
    file.write_bytes(data)
    with pytest.raises(YtError):
        persist.load(cluster, str(file))
    with pytest.raises(YtError):
        persist.load(cluster, str(tmp_path / "nowhere"))
    with pytest.raises(YtError):
        persist.save(cluster, str(tmp_path / "nowhere" / "s"))
    assert cluster.cypress.get("//tmp/x") == 1
