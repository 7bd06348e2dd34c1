"""The vault of an operation as variables of its jobs."""

from __future__ import annotations

from typing import Any

from yt import yson


def variables(vault: dict[str, Any]) -> dict[str, str]:
    """Return the vault as a whole and its simple values one by one.

    A map or a list has no variable of its own (server test, integration/scheduler,
    TestSecureVault).
    """
    if not vault:
        return {}
    found = {"YT_SECURE_VAULT": _text(vault)}
    for name, value in vault.items():
        if isinstance(value, str):
            found[f"YT_SECURE_VAULT_{name}"] = str(value)
        elif not isinstance(value, dict | list):
            found[f"YT_SECURE_VAULT_{name}"] = _text(value).removesuffix("u").lstrip("%")
    return found


def _text(value: Any) -> str:
    data: bytes = yson.dumps(value, yson_format="text")
    return data.decode()
