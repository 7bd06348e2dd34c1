"""Transactions of the runtime's own, which SPYT's client in the JVM starts."""

from __future__ import annotations

import pytest

from minicluster.testing import Running
from ytstream.connector.tablet_transactions import Tablets

pytestmark = pytest.mark.spark


def test_an_exception_aborts_the_transaction(tablets: Tablets, cluster: Running) -> None:
    """The client keeps pinging it. Its locks would refuse the next driver for as long as that."""

    def fail() -> None:
        with tablets.transaction():
            raise KeyError("a row that is not there")

    before = len(cluster.client.journal("AbortTransaction"))
    with pytest.raises(KeyError):
        fail()
    assert len(cluster.client.journal("AbortTransaction")) == before + 1
