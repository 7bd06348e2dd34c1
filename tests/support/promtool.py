"""promtool, which Debian has in the package prometheus: rules are evaluated over series."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


def promtool() -> str:
    """Return its path. Raises FileNotFoundError with what to install."""
    found = shutil.which("promtool")
    if found is None:
        command = "apt-get install --no-install-recommends prometheus"
        raise FileNotFoundError(f"promtool is missing: {command}")
    return found


def series_name(name: str, labels: Mapping[str, str]) -> str:
    """Return a series as Prometheus names it."""
    return name + "{" + ", ".join(f"{k}={json.dumps(v)}" for k, v in labels.items()) + "}"


@dataclass
class Series:
    """What was scraped, minute by minute."""

    _found: dict[str, dict[int, float]] = field(default_factory=dict)
    """Series -> minute -> value."""

    def note(self, minute: int, name: str, labels: Mapping[str, str], value: float) -> None:
        """Note one value."""
        self._found.setdefault(series_name(name, labels), {})[minute] = value

    def values(self, minutes: int) -> dict[str, list[str]]:
        """Return a value of each series for each minute, "_" where there was none."""
        return {
            name: [f"{known[m]:.17g}" if m in known else "_" for m in range(minutes)]
            for name, known in self._found.items()
        }


def fires(
    folder: Path, rules: str, series: Mapping[str, list[str]], wanted: set[str], minute: int,
    only: str = ".*",
) -> None:  # fmt: skip
    """Let promtool evaluate the rules; compare those that fire at that minute with ``wanted``."""
    (folder / "rules.yml").write_text(rules, encoding="utf-8")
    firing = f'ALERTS{{alertstate="firing", alertname=~"{only}"}}'
    test = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": [
                {"series": name, "values": " ".join(values)} for name, values in series.items()
            ],
            "promql_expr_test": [{
                "expr": f"count by (alertname) ({firing})",
                "eval_time": f"{minute}m",
                "exp_samples": [
                    {"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(wanted)
                ],
            }],
        }],
    }  # fmt: skip
    (folder / "test.yml").write_text(json.dumps(test))
    for words in (["check", "rules", "rules.yml"], ["test", "rules", "test.yml"]):
        done = subprocess.run(
            [promtool(), *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
