"""A sensor and an operator for Airflow: copy this file next to your DAGs. It needs ytsaurus-client.

The token comes from YT_TOKEN of the worker's environment.
"""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from typing import Any

import yt.wrapper as yt
from airflow.exceptions import AirflowException
from airflow.models import BaseOperator
from airflow.sensors.base import BaseSensorOperator


class ArchiveSensor(BaseSensorOperator):  # type: ignore[misc]
    """Waits until an archive has all tables of the periods that end up to a time."""

    template_fields = ("folder", "until")

    def __init__(self, *, proxy: str, folder: str, until: str, **options: Any) -> None:
        """Take the cluster, the archive's folder, and the end of the last period as ISO 8601."""
        super().__init__(**options)
        self.proxy, self.folder, self.until = proxy, folder, until

    def poke(self, context: Any) -> bool:
        """Return whether all tables are there."""
        client = yt.YtClient(proxy=self.proxy, token=os.environ.get("YT_TOKEN"))
        said = client.get_attribute(self.folder, "ytstream_complete_until", "")
        return bool(said >= _named(self.until))


class SubmitOperator(BaseOperator):  # type: ignore[misc]
    """Starts a job with `make submit`, which returns after its first batch."""

    template_fields = ("repository", "config")

    def __init__(
        self, *, repository: str, config: str = "config/production.toml", **options: Any
    ) -> None:
        """Take the folder of the job's repository and the configuration in it."""
        super().__init__(**options)
        self.repository, self.config = repository, config

    def execute(self, context: Any) -> str:
        """Submit it; return what was printed. A job that runs already is replaced."""
        words = ["make", "-C", self.repository, "submit", f"CONFIG={self.config}", "REPLACE=1"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AirflowException(done.stdout + done.stderr)
        return done.stdout


def _named(text: str) -> str:
    time = datetime.fromisoformat(text)
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
