"""What an organisation answers once for all its jobs: public names that no question asks for.

cookiecutter drops names that are not in cookiecutter.json, and asks for each that is. So these are
read from the same places as the other answers, and put beside them once the questions are over:
cruft stores them, and hands them in again at an update.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cookiecutter.config import get_user_config

from .callers import Call
from .problem import Problem
from .text import shown


class Setting(NamedTuple):
    """An answer: what it sets, which values are good, and how to say so."""

    what: str
    pattern: str
    expected: str


_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_NAME_EXPECTED = "give a name of letters a-z, digits and _ . -"

#: By their public names. All are optional; without one, the project leaves it to its user.
SETTINGS = {
    "account": Setting("`account` of config/production.toml", _NAME, _NAME_EXPECTED),
    "pool": Setting("`pool` of config/production.toml", _NAME, _NAME_EXPECTED),
    "proxy_role": Setting("`proxy_role` of config/production.toml", _NAME, _NAME_EXPECTED),
    "ci_image": Setting(
        "the container that CI runs in",
        # No `latest`: what runs tomorrow would not be what ran today.
        r"(?!.*:latest$)[a-z0-9][a-z0-9._/-]*(:[0-9]+/[a-z0-9._/-]+)?"
        r"(:[\w][\w.-]*|(:[\w][\w.-]*)?@sha256:[0-9a-f]{64})",
        "give registry/name:tag or registry/name@sha256:..., another tag than latest",
    ),
    "package_index": Setting(
        "the package index of `make setup` and CI",
        r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~-]+)*/?",
        "give its address alone, such as https://index.example.com/simple: a user name and a token"
        " come from the environment or the settings of pip, never from a file of the repository",
    ),
}


def values(call: Call) -> dict[str, str]:
    """Return every setting: as it was given, as cruft stored it, of the configuration, or ""."""
    sources = (call.given, call.stored, _defaults(call.arguments))
    return {name: next((one[name] for one in sources if name in one), "") for name in SETTINGS}


def problems(options: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield why a value is none that the project could use; one that may be a secret is not shown.

    A setting without a value is none.
    """
    for name, setting in SETTINGS.items():
        value = options.get(name, "")
        if not isinstance(value, str):
            yield Problem(f"{name} is not text; give a string", name)
        elif value and not re.fullmatch(setting.pattern, value, re.ASCII):
            told = name if re.search(r"[@?#%:]", value) else f"{name} {shown(value)}"
            yield Problem(f"{told} cannot be {setting.what}; {setting.expected}", name)


def _defaults(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the configuration of cookiecutter has for all templates.

    It is the file of ``--config-file``, of COOKIECUTTER_CONFIG, or the one in the home.
    """
    file = arguments.get("config_file")
    config = get_user_config(
        config_file=str(file) if file else None,
        default_config=arguments.get("default_config") or False,
    )
    found = config.get("default_context")
    return found if isinstance(found, Mapping) else {}
