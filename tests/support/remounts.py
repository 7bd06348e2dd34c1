"""What maintenance does to a dynamic table: it is unmounted, perhaps changed, and mounted again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Change = Callable[[Any, str], None]
"""What happens to a table while it is unmounted: its client and its path."""
ADDED = {"name": "added_later", "type": "string"}
"""The column of one_more_column()."""


def nothing(client: Any, path: str) -> None:
    """Change nothing."""


def one_more_tablet(client: Any, path: str) -> None:
    """Reshard the table: a sorted one into two tablets, an ordered one into one more."""
    if client.get(f"{path}/@sorted"):
        is_text = client.get(f"{path}/@schema")[0]["type"] in ("string", "utf8")
        client.reshard_table(path, [[], ["m" if is_text else 1]], sync=True)
    else:
        count = client.get(f"{path}/@tablet_count")
        client.reshard_table(path, tablet_count=count + 1, sync=True)


def one_more_column(client: Any, path: str) -> None:
    """Alter the table: it has one more column, which may be empty."""
    schema = client.get(f"{path}/@schema")
    schema.append({**ADDED})
    client.alter_table(path, schema=schema)


def remount(client: Any, path: str, change: Change = nothing) -> None:
    """Unmount the table, change it, and mount it."""
    client.unmount_table(path, sync=True)
    change(client, path)
    client.mount_table(path, sync=True)
