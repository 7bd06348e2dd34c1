"""A limit of open files that is too low is named, wherever it is met."""

from __future__ import annotations

import errno
import resource

import pytest
from pyspark.errors import SparkRuntimeException

from tests.support.helpers import fails_with, unconnected
from ytstream import cli
from ytstream.cluster.client import explained
from ytstream.connector.java_home import require_java
from ytstream.errors.error_codes import ErrorCode
from ytstream.errors.open_files import LEAST
from ytstream.spark.spark_errors import explained_spark

FULL = OSError(errno.EMFILE, "Too many open files", "/etc/hosts")


@pytest.mark.parametrize("hard", [LEAST - 1, LEAST, resource.RLIM_INFINITY])
def test_a_jvm_is_not_started_where_it_would_end_at_once(
    monkeypatch: pytest.MonkeyPatch, hard: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, hard))
    if hard == LEAST - 1:
        with fails_with(ErrorCode.OPEN_FILES) as caught:
            require_java()
        assert "this process may have 64, at most 511" in caught.value.message
        assert "ulimit -n" in caught.value.remedy
    else:
        require_java()


def test_a_command_that_can_open_no_file_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        raise FULL

    assert cli.reported("status", work) == 1
    assert "ulimit -n" in capsys.readouterr().err


def test_it_is_not_taken_for_a_wrong_path_or_a_damaged_state() -> None:
    with fails_with(ErrorCode.OPEN_FILES), explained(unconnected("transactional").settings):
        raise FULL
    said = "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] java.io.IOException: x: Too many open files"
    with fails_with(ErrorCode.OPEN_FILES), explained_spark():
        raise SparkRuntimeException(said)
