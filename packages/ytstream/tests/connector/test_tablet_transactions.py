"""Transactions of the runtime's own, which SPYT's client in the JVM starts."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from minicluster.testing import Running
from ytstream.connector import tablet_transactions
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


def test_the_first_transaction_finds_the_client_that_was_made_ahead(
    spark: SparkSession, tablets: Tablets, cluster: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = Tablets(spark._jvm, tablets.settings)
    cluster.client.faults.add(method="ExistsNode", action="fail")
    ahead.connect_ahead().join()  # its error is nobody's
    monkeypatch.setattr(tablet_transactions, "rpc_client", Mock(side_effect=KeyError("again")))
    with ahead.transaction() as transaction:
        assert transaction.id
