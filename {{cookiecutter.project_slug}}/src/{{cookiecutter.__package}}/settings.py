"""The job's settings: one frozen value, read once, from one TOML file and the environment."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from .errors import JobError
from .processing import ProcessingSettings
from .rules import FLAG, PATH, PATHS, TEXT, TEXTS, one_of, seconds, whole

DEFAULT_CONFIG = Path("config/local.toml")

#: A transaction may not touch more rows of one tablet (YTsaurus documentation, "Transactions").
ROWS_PER_TABLET_AND_TRANSACTION = 100_000

# More often, the driver would ask the cluster for the queues' ends in a tight loop.
_TRIGGER = seconds(
    0.1,
    3600,
    " (AvailableNow is not offered: SPYT's source then reads everything in one batch and never "
    "moves the consumer)",
)


@dataclass(frozen=True)
class Settings(ProcessingSettings):
    """Everything that differs between clusters. Paths are Cypress paths."""

    proxy: str = field(metadata=TEXT)
    queues: tuple[str, ...] = field(metadata=PATHS)
    consumer: str = field(metadata=PATH)
    output: str = field(metadata=PATH)
    checkpoint: str = field(metadata=PATH)
    allow_env_proxy: bool = field(default=False, metadata=FLAG)
    create_queues: bool = field(default=False, metadata=FLAG)
    start_from: str = field(default="earliest", metadata=one_of("earliest", "latest"))
    on_data_loss: str = field(default="fail", metadata=one_of("fail", "skip"))
    trigger_seconds: float = field(default=5.0, metadata=_TRIGGER)
    max_rows_per_partition: int = field(default=20_000, metadata=whole(1, 10_000_000))
    #: None: chosen by the guarantee for the queues' size.
    dyn_batch_size: int | None = field(
        default=None, metadata=whole(1, ROWS_PER_TABLET_AND_TRANSACTION)
    )
    account: str | None = field(default=None, metadata=TEXT)
    tablet_cell_bundle: str | None = field(default=None, metadata=TEXT)
    medium: str | None = field(default=None, metadata=TEXT)
    #: Milliseconds; the Queue Agent wants whole seconds.
    output_retention: int | None = field(default=None, metadata=whole(1_000, 10**13))
    pool: str | None = field(default=None, metadata=TEXT)
    proxy_role: str | None = field(default=None, metadata=TEXT)
    spyt_version: str = field(default="2.11.2", metadata=TEXT)
    accept: tuple[str, ...] = field(default=(), metadata=TEXTS)

    @property
    def checkpoint_uri(self) -> str:
        """The checkpoint as Spark names it; with three slashes SPYT's YtFs renames atomically."""
        return f"yt:/{self.checkpoint}"


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read ``path``. Raises JobError with all that is wrong with it, or with ``YT_PROXY``."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(
            f"cannot read the configuration {path}: {error.strerror}",
            "name an existing file with --config, e.g. --config config/production.toml",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JobError(f"{path} is not valid TOML: {error}", "correct that line") from None
    values, problems = _checked(raw)
    if problems:
        raise JobError(
            f"{path}: " + f"\n{path}: ".join(problems), "correct the file; nothing was started"
        )
    settings = Settings(**values)
    wanted = environment.get("YT_PROXY", "").strip() or settings.proxy
    if wanted != settings.proxy and not settings.allow_env_proxy:
        raise JobError(
            f"YT_PROXY={wanted} in the environment, but {path} says proxy = {settings.proxy!r}",
            "unset YT_PROXY, or name the configuration of that cluster with --config",
        )
    return replace(settings, proxy=wanted)


def token(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """The token, from the environment alone (SPYT puts it into the vault on the cluster).

    Raises JobError when a cluster needs a token, as all but the loopback do, and none is there.
    """
    found = environment.get("YT_TOKEN") or environment.get("YT_SECURE_VAULT_YT_TOKEN")
    if found or is_loopback(settings.proxy):
        return found or "minicluster-needs-no-token"
    raise JobError(
        f"no token for {settings.proxy}: YT_TOKEN is not set",
        "export YT_TOKEN=... in the shell (never in a file of this repository)",
    )


def is_loopback(proxy: str) -> bool:
    """Whether the proxy is on this machine, as the minicluster is."""
    host = re.sub(r"^https?://", "", proxy).rsplit(":", 1)[0]
    return host in {"127.0.0.1", "localhost", "[::1]"}


def _checked(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The values that are good, and what is wrong with the file."""
    keys = {key.name: key for key in fields(Settings)}
    known = ", ".join(sorted(keys))
    problems = [f"unknown key {name!r}; known are: {known}" for name in raw if name not in keys]
    values: dict[str, Any] = {}
    for name, key in keys.items():
        if name not in raw:
            problems += [f"missing key {name!r}"] if key.default is MISSING else []
        elif key.metadata["is_good"](raw[name]):
            # Sorted, because a checkpoint knows its queues by their position alone: SPYT ignores
            # the path in a stored offset, and swapped queues lose and repeat rows.
            values[name] = tuple(sorted(raw[name])) if isinstance(raw[name], list) else raw[name]
        else:
            problems.append(f"{name} = {raw[name]!r}: wanted {key.metadata['wanted']}")
    paths = [*values.get("queues", ())]
    paths += [values[name] for name in values if keys[name].metadata == PATH]
    problems += [f"{path} is named twice" for path in dict.fromkeys(paths) if paths.count(path) > 1]
    pairs = ((path, other) for path in paths for other in paths)
    problems += [f"{path} is inside {o}" for path, o in pairs if path.startswith(f"{o}/")]
    return values, problems
