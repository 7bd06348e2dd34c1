"""The answers: which ones there are, and what is wrong with those that are given.

They are checked as a whole. A problem says what is wrong, in which option, and what to do.

An organisation gives the answers of SETTINGS once for all its jobs. No question asks for them:
cookiecutter asks for each public name of cookiecutter.json, and cruft forgets the private ones at
an update (``_generate_output`` of cruft/_commands/utils/generate.py). So ``settings`` reads them
from where the other answers come from. cruft stores them with the others.
"""

from __future__ import annotations

import difflib
import json
import keyword
import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from cookiecutter.config import USER_CONFIG_PATH, get_user_config
from slugify import slugify

from . import text, versions
from .text import shown

Answers = Mapping[str, str]

_OPTIONS = Path(__file__).resolve().parent.parent / "cookiecutter.json"
_RULES = Path(__file__).parent.parent / "packages/ytstream/src/ytstream/settings/job_rules.toml"
RULES = tomllib.loads(_RULES.read_text(encoding="utf-8"))
"""What the runtime knows of a job, too: the pairs that do not fit, addresses, Spark's settings."""


class Problem(NamedTuple):
    """One line for the user, the option that it is about, and a good answer if there is one."""

    text: str
    option: str = ""
    fix: tuple[str, str] | None = None


class Setting(NamedTuple):
    """An answer of an organisation: what it sets, the pattern of good values, and a hint."""

    what: str
    pattern: str
    expected: str


_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_NAME_EXPECTED = "Give a name of letters a-z, digits and _ . -"

SETTINGS = {
    "account": Setting("`account` of config/production.toml", _NAME, _NAME_EXPECTED),
    "pool": Setting("`pool` of config/production.toml", _NAME, _NAME_EXPECTED),
    "proxy_role": Setting("`proxy_role` of config/production.toml", _NAME, _NAME_EXPECTED),
    "ci_image": Setting(
        "the container that CI runs in",
        # No `latest`: what runs tomorrow would not be what ran today.
        r"(?!.*:latest$)[a-z0-9][a-z0-9._/-]*(:[0-9]+/[a-z0-9._/-]+)?"
        r"(:[\w][\w.-]*|(:[\w][\w.-]*)?@sha256:[0-9a-f]{64})",
        "Give registry/name:tag or registry/name@sha256:..., another tag than latest",
    ),
    "package_index": Setting(
        "the package index of `make setup` and CI",
        r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~-]+)*/?",
        "Give only its address, such as https://index.example.com/simple: a user name and a token"
        " come from the environment or the settings of pip, never from a file of the repository",
    ),
}
"""By their public names. All are optional."""

FALLBACK_SLUG = "ytstream-job"
LONGEST_SLUG = 64
# Of problems with one option: two thousand queues may have as many.
MOST_LINES = 5

# A subset of PEP 508 names: with "_" for "-" it is a lower-case identifier, as the linters want it.
_SLUG = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")

_PATH = re.compile(RULES["address"]["path"])
_PATH_EXPECTED = (
    "Give an absolute path such as //home/team/job: single slashes between folders, none at the"
    " end, only letters a-z, digits and _ . - + = ~ (no attributes, ranges or wildcards)"
)
_SYSTEM = "//sys"
"""The folder of the cluster's own settings and state."""

_PROXY = re.compile(RULES["address"]["proxy"])
# A query or a fragment may hold a token.
_NO_SECRET = re.compile(r"[A-Za-z0-9_.:/ -]*")

_FOLDERS = frozenset(
    (
        "build",
        "config",
        "conftest",
        "dist",
        "docs",
        "main",
        "minicluster",
        "sample",
        "src",
        "tests",
        "ytstream",
        "ytstream_doctor",
        "ytstream_tools",
    )
)

# Modules that the environments hold in addition to the pinned packages: a package with the name
# of one would hide it. A test compares this list with what is installed.
_MODULES = """
    aiohappyeyeballs aiosignal annotated_doc annotated_types argcomplete arrow ast_serialize attr
    attrs binaryornot certifi cfgv charset_normalizer click dateutil decorator distlib distro
    execnet filelock frozenlist git gitdb google grimp grpc grpc_tools identify idna
    importlinter iniconfig jinja2
    librt markdown_it markupsafe mdurl multidict mypy_extensions mypyc nodeenv numpy packaging
    pathspec pip pkg_resources platformdirs pluggy propcache py py4j pyarrow pydantic pydantic_core
    pygments pyproject_hooks python_discovery pytz requests setuptools shellingham simplejson
    slugify smmap sortedcontainers spyt text_unidecode tomlkit tqdm trove_classifiers typer
    typing_extensions typing_inspection tzdata urllib3 virtualenv wheel xdist yaml yarl yt
    yt_driver_rpc_bindings yt_yson_bindings
"""
_INSTALLED = frozenset(_MODULES.split()) | {
    entry.name.lower().replace("-", "_") for entry in versions.PINS if entry.scope != "ci"
}
# The interpreter's own list leaves its test package out.
_STANDARD_LIBRARY = sys.stdlib_module_names | {"test"}


def offered() -> dict[str, Any]:
    """Return the options: a list of choices, or a default."""
    return public(json.loads(_OPTIONS.read_text(encoding="utf-8")))


def public(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a context, without cookiecutter's variables and the template's own."""
    return {name: value for name, value in context.items() if not name.startswith("_")}


def unknown(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each answer that cookiecutter would drop without a message.

    It drops names that are not options, and all of a list but its first element. Private names are
    not checked: cruft hands in those of an earlier render.
    """
    options = offered()
    known = {**options, **dict.fromkeys(SETTINGS, "")}
    for name, value in given.items():
        if name.startswith("_") or name in SETTINGS:
            continue
        if name in options:
            if not isinstance(value, str):
                yield Problem(f"{name} is not text. Give one string", name)
            continue
        near = difflib.get_close_matches(_snake(name), known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Give {', '.join(options)}"
        problem = Problem(f"{_plain(name)} is not an option. {hint}", near[0] if near else "")
        if near and isinstance(value, str) and _fits(value, known[near[0]]):
            problem = problem._replace(fix=(near[0], value))
        yield problem


def dropped(configured: Mapping[str, Any], answered: Mapping[str, Any]) -> list[str]:
    """Return why answers of the configuration would be lost, or nothing if ``answered`` has them.

    cookiecutter drops a choice that is not offered and every answer after it, with a warning of
    Python (``generate_context`` and ``apply_overwrites_to_context`` of cookiecutter/generate.py).
    """
    options = offered()
    names = [name for name in configured if name in options]
    wrong = [name for name in names if not _is_offered(configured[name], options[name])]
    lost = names[names.index(wrong[0]) :] if wrong else []
    if all(name in answered for name in lost):
        return []
    others = [name for name in lost if name not in wrong]
    more = f"cookiecutter would also drop the answers after it: {', '.join(others)}"
    return [_not_offered(name, configured[name], options[name]) for name in wrong] + (
        [more] if others else []
    )


def _is_offered(value: Any, option: Any) -> bool:
    if not isinstance(option, list):
        return True
    return {*value} <= {*option} and bool(value) if isinstance(value, list) else value in option


def _not_offered(name: str, value: Any, choices: list[str]) -> str:
    if isinstance(value, int | float) and str(value) in choices:  # YAML takes 4.1 for a number
        return f'{name} {value} is not text. Write it in quotes: "{value}"'
    return f"{name} {shown(str(value))} is not a choice. Give one of {', '.join(choices)}"


def _snake(name: str) -> str:
    """Return queue_paths for queuePaths, queue-paths and QUEUE_PATHS."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]+", "_", name).lower()


def _plain(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else shown(name)


def _fits(value: str, option: Any) -> bool:
    return not isinstance(option, list) or value in option


def settings(
    given: Mapping[str, Any], recorded: Mapping[str, Any], configured: Mapping[str, Any]
) -> dict[str, Any]:
    """Return each setting: as given, else as cruft recorded it, else as configured, else ""."""
    sources = (given, recorded, configured)
    return {name: next((one[name] for one in sources if name in one), "") for name in SETTINGS}


def configuration_file(arguments: Mapping[str, Any]) -> str:
    """Return the file of ``--config-file``, of COOKIECUTTER_CONFIG, or the one in the home."""
    return str(
        arguments.get("config_file") or os.environ.get("COOKIECUTTER_CONFIG") or USER_CONFIG_PATH
    )


def configuration(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of cookiecutter, which serves all templates."""
    file = arguments.get("config_file")
    found: dict[str, Any] = get_user_config(
        config_file=str(file) if file else None,
        default_config=arguments.get("default_config") or False,
    )
    return found


def slug(project_name: str) -> str:
    """Return a default for project_slug that is always accepted, in any alphabet of the name."""
    words = slugify(project_name, max_length=LONGEST_SLUG - len("job-"), word_boundary=True)
    candidates = (words, f"job-{words}", f"{words}-job")
    return next((name for name in candidates if not any(_slug_problems(name))), FALLBACK_SLUG)


def queues(given: Answers) -> list[str]:
    """Return the queues in their stored order: a checkpoint knows its queues by position alone."""
    return sorted(given["queue_paths"].split())


def stored(given: Answers) -> dict[str, str]:
    """Return the answers as the project and the replay files keep them."""
    if any(_unusable(given)):
        return dict(given)
    # An address that was copied from a browser ends with a slash.
    address = given["yt_proxy"].strip().rstrip("/")
    return {**given, "queue_paths": " ".join(queues(given)), "yt_proxy": address}


def found(options: Answers) -> list[Problem]:
    """Return all reasons why these answers do not give a working project."""
    # The other checks read the values and need them to be there.
    return list(_unusable(options)) or [
        *(Problem(problem, "project_slug") for problem in _slug_problems(options["project_slug"])),
        *_path_problems(queues(options), options["cypress_root"]),
        *(Problem(problem, "yt_proxy") for problem in proxy_problems(options["yt_proxy"])),
        *pair_problems(options),
        *_setting_problems(options),
    ]


def shortened(problems: list[Problem]) -> list[str]:
    """Return a line for each problem, but only the first few with one option, and their number."""
    lines = []
    seen = Counter[str]()
    for problem in problems:
        seen[problem.option] += 1
        if not problem.option or seen[problem.option] <= MOST_LINES:
            lines.append(problem.text)
    more = {option: number - MOST_LINES for option, number in seen.items() if option}
    return lines + [f"{option}: {number} more" for option, number in more.items() if number > 0]


def _unusable(options: Answers) -> Iterator[Problem]:
    for name, value in options.items():
        if not isinstance(value, str):
            yield Problem(f"{name} is not text. Give a string", name)
        elif not value and name in SETTINGS:
            continue
        elif not value.strip():
            what = "Give it a value, or leave it out to take the default"
            yield Problem(f"{name} is empty. {what}", name)
        # Python decodes arguments that are not UTF-8 into lone surrogates, which no file can hold.
        elif any("\ud800" <= character <= "\udfff" for character in value):
            yield Problem(f"{name} is not UTF-8 text. Type it in a terminal that sends UTF-8", name)
        elif hidden := text.CONTROL.search(value):
            code = f"U+{ord(hidden[0]):04X} ({text.called(hidden[0])})"
            what = "a reader does not see it, and a terminal obeys it. Leave it out"
            yield Problem(f"{name} has the character {code}: {what}", name)


def _slug_problems(value: str) -> Iterator[str]:
    package = value.replace("-", "_")
    if not _SLUG.fullmatch(value):
        yield (
            f"project_slug {shown(value)} cannot name a package. Give lower-case letters a-z,"
            " digits and single - or _ between them, a letter first, such as my-job"
        )
    elif len(value) > LONGEST_SLUG:
        yield f"project_slug has {len(value)} characters. Give at most {LONGEST_SLUG}"
    elif keyword.iskeyword(package):
        yield f"project_slug {shown(value)} is a Python keyword. Give another: {value}-job"
    else:
        for names, what in (
            (_STANDARD_LIBRARY, "a module of the standard library"),
            (_INSTALLED, "a package that the project installs"),
            (_FOLDERS, "a folder or module of the project"),
        ):
            if package in names or (names is _FOLDERS and package.startswith("test_")):
                yield (
                    f"project_slug {shown(value)}: the package {package} would hide {what}."
                    f" Give another: {value}-job"
                )
                return


def _path_problems(paths: list[str], root: str) -> Iterator[Problem]:
    for option, path in [*(("queue_paths", path) for path in paths), ("cypress_root", root)]:
        if not _PATH.fullmatch(path):
            what = f"{shown(path)} is not a plain Cypress path"
            yield Problem(f"{option}: {what}. {_PATH_EXPECTED}", option)
        if path == _SYSTEM or _inside(path, _SYSTEM):
            what = f"{shown(path)} belongs to the cluster itself"
            yield Problem(
                f"{option}: {what}. Give one of your own, such as //home/team/job", option
            )
    for problem in _queue_problems(paths):
        yield Problem(f"queue_paths: {problem}", "queue_paths")
    for problem in _root_problems(paths, root) if _PATH.fullmatch(root) else ():
        yield Problem(f"cypress_root: {shown(root)} {problem}", "cypress_root")


def _queue_problems(paths: list[str]) -> Iterator[str]:
    for path in sorted({first for first, second in pairwise(paths) if first == second}):
        yield f"{shown(path)} is there more than once. Name each queue once"
    for path in sorted(set(paths)):
        *folders, _ = accumulate(path.split("/"), "{}/{}".format)
        for folder in sorted({*folders} & {*paths}):
            yield (
                f"{shown(path)} lies inside {shown(folder)}, but a queue is a table and holds"
                " nothing. Name two tables"
            )


def _root_problems(paths: list[str], root: str) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        if path == root or _inside(path, root):
            yield (
                f"{'is' if path == root else 'holds'} the queue {shown(path)}. Give the job a"
                " folder of its own, which may be removed without losing a queue"
            )
        elif _inside(root, path):
            yield (
                f"lies inside the queue {shown(path)}, which is a table. Give the job a folder of"
                " its own"
            )


def _inside(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def proxy_problems(value: str) -> Iterator[str]:
    """Yield why this is not the address of a cluster, without showing what may be secret in it."""
    match = _PROXY.fullmatch(value)
    if "@" in value:
        yield (
            "yt_proxy has a user name or a token before the @. Give only the address: the token"
            " comes from the environment, YT_TOKEN, never from a file"
        )
    elif not match:
        what = f"yt_proxy {shown(value)}" if _NO_SECRET.fullmatch(value) else "yt_proxy"
        yield (
            f"{what} is not an address. Give a cluster's name, a host or host:port"
            " (yt.example.com:80), with http:// or https:// if need be, without a path"
        )
    elif match["port"] and not 1 <= int(match["port"]) <= 65535:
        yield f"yt_proxy {shown(value)}: no port {match['port']}. Give one from 1 to 65535"


def pair_problem(guarantee: str, processing: str) -> str:
    """Return why this guarantee cannot hold for this processing; "" when it can."""
    impossible = RULES["impossible"].get(guarantee, {"reasons": {}})
    reason = impossible["reasons"].get(processing, "")
    return impossible["message"].format(processing=processing, reason=reason) if reason else ""


def pair_problems(options: Answers) -> Iterator[Problem]:
    """Yield why the guarantee does not go with the processing, with one that does."""
    processing = options["processing"]
    if why := pair_problem(options["guarantee"], processing):
        yield Problem(
            f"{why}. Guarantee transactional is exactly once for {processing} too",
            "guarantee",
            ("guarantee", "transactional"),
        )


def _setting_problems(options: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield why the project cannot use a setting. A value that may be a secret is not shown."""
    for name, setting in SETTINGS.items():
        value = options.get(name, "")
        if not isinstance(value, str):
            yield Problem(f"{name} is not text. Give a string", name)
        elif value and not re.fullmatch(setting.pattern, value, re.ASCII):
            told = name if re.search(r"[@?#%:]", value) else f"{name} {shown(value)}"
            yield Problem(f"{told} cannot be {setting.what}. {setting.expected}", name)
