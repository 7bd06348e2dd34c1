"""Requests of the control interface: JSON in, JSON out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from ..core.errors import generic

Answer = Callable[[web.Request], Awaitable[Any]]


def as_json(answer: Answer) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(await answer(request), dumps=_dumps)

    return handler


def _dumps(value: Any) -> str:
    return json.dumps(value, default=str)


async def body(request: web.Request) -> dict[str, Any]:
    try:
        given = await request.json() if request.can_read_body else {}
    except ValueError as error:
        raise generic(f"Error parsing JSON: {error}") from None
    if not isinstance(given, dict):
        raise generic("A JSON object was expected")
    return given


def number(given: Any, name: str, default: float | None = None) -> float:
    value = given.get(name, default)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise generic(f'"{name}" must be a number, not {value!r}') from None
