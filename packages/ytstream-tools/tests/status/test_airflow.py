"""The file for Airflow, against a minicluster. Airflow itself is replaced by empty classes."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yt.wrapper as yt

from minicluster.testing import Running
from tests.support.project import ROOT

FILE = ROOT / "docs/airflow_ytstream.py"


class _Operator:
    """What a sensor and an operator inherit."""

    def __init__(self, **options: Any) -> None:
        self.options = options


class _AirflowError(Exception):
    """A task has failed."""


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the file as a DAG does."""
    names: dict[str, dict[str, Any]] = {
        "airflow": {},
        "airflow.exceptions": {"AirflowException": _AirflowError},
        "airflow.models": {"BaseOperator": _Operator},
        "airflow.sensors": {},
        "airflow.sensors.base": {"BaseSensorOperator": _Operator},
    }
    for name, values in names.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    spec = spec_from_file_location("airflow_ytstream", FILE)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(module := module_from_spec(spec))
    return module


def test_the_sensor_waits_for_the_end_of_the_period(plugin: Any, cluster: Running) -> None:
    client: Any = yt.YtClient(proxy=cluster.http, token="none")
    folder = "//home/tests/airflow"
    client.create("map_node", folder, recursive=True)
    until = "2026-11-29T20:00:00+00:00"
    sensor = plugin.ArchiveSensor(proxy=cluster.http, folder=folder, until=until, task_id="wait")
    assert not sensor.poke({})
    client.set(f"{folder}/@ytstream_complete_until", "2026-11-29T19:00:00Z")
    assert not sensor.poke({})
    client.set(f"{folder}/@ytstream_complete_until", "2026-11-29T20:00:00Z")
    assert sensor.poke({})


def test_the_operator_submits_the_job(plugin: Any, tmp_path: Path) -> None:
    makefile = tmp_path / "Makefile"
    makefile.write_text("submit:\n\t@echo $(CONFIG) $(REPLACE)\n")
    operator = plugin.SubmitOperator(repository=str(tmp_path), task_id="submit")
    assert "config/production.toml 1" in operator.execute({})
    makefile.write_text("submit:\n\t@echo refused >&2; exit 3\n")
    with pytest.raises(_AirflowError, match="refused"):
        operator.execute({})
