"""The answers, checked as a whole: what is wrong, in which option, and what to do."""

from __future__ import annotations

import difflib
import json
import keyword
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, pairwise
from pathlib import Path

from slugify import slugify

from . import versions

Answers = Mapping[str, str]

TEMPLATE = Path(__file__).resolve().parent.parent

FALLBACK_SLUG = "ytstream-job"
LONGEST_SLUG = 64

# A subset of PEP 508 names: with "_" for "-" it is a lower-case identifier, as the linters want it.
_NAME = re.compile(r"[a-z_]+")
_SLUG = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")

# The runtime's own rules of paths and addresses, of a module that needs no package.
_RUNTIME = TEMPLATE / "packages/ytstream/src/ytstream"
_ADDRESSES = runpy.run_path(str(_RUNTIME / "addresses.py"))
_is_plain: Callable[[str], bool] = _ADDRESSES["is_path"]
_PATH_EXPECTED = (
    "give an absolute path such as //home/team/job: single slashes between folders, none at the"
    " end, only letters a-z, digits and _ . - + = ~ (no attributes, ranges or wildcards)"
)

_PROXY: re.Pattern[str] = _ADDRESSES["PROXY"]

_FOLDERS = frozenset(
    (
        *("build", "config", "conftest", "dist", "docs", "main", "minicluster", "sample"),
        *("src", "tests", "ytstream"),
    )
)

# Modules that the environments hold besides the pinned packages: a package of the same name would
# hide one of them. A test compares this list with what is installed.
_MODULES = """
    aiohappyeyeballs aiosignal annotated_doc annotated_types argcomplete arrow ast_serialize attr
    attrs binaryornot certifi cfgv charset_normalizer click dateutil decorator distlib distro
    execnet filelock frozenlist git gitdb google grpc grpc_tools identify idna iniconfig jinja2
    librt markdown_it markupsafe mdurl multidict mypy_extensions mypyc nodeenv numpy packaging
    pathspec pip pkg_resources platformdirs pluggy propcache py py4j pyarrow pydantic pydantic_core
    pygments pyproject_hooks python_discovery pytz requests setuptools shellingham simplejson
    slugify smmap sortedcontainers spyt text_unidecode tomlkit tqdm trove_classifiers typer
    typing_extensions typing_inspection tzdata urllib3 virtualenv wheel xdist yaml yarl yt
    yt_yson_bindings
"""
_INSTALLED = frozenset(_MODULES.split()) | {
    entry.name.lower().replace("-", "_") for entry in versions.PINS if entry.scope != "ci"
}
# The interpreter's own list leaves its test package out.
_STANDARD_LIBRARY = sys.stdlib_module_names | {"test"}

_pair_problem: Callable[[str, str], str | None] = runpy.run_path(str(_RUNTIME / "pairs.py"))[
    "problem"
]


def slug(project_name: str) -> str:
    """Return a default for project_slug that is always accepted, in any alphabet of the name."""
    words = slugify(project_name, max_length=LONGEST_SLUG - len("job-"), word_boundary=True)
    candidates = (words, f"job-{words}", f"{words}-job")
    return next((name for name in candidates if not any(_slug_problems(name))), FALLBACK_SLUG)


def queues(given: Answers) -> list[str]:
    """Return the queues in their stored order: a checkpoint knows its queues by position alone."""
    return sorted(given["queue_paths"].split())


def problems(given: Answers) -> list[str]:
    """Return all reasons why these answers do not give a working project, each on one line."""
    options = {name: value for name, value in given.items() if not name.startswith("_")}
    # The other checks read the values and need them to be there.
    return list(_unusable(options)) or [
        *_slug_problems(given["project_slug"]),
        *_path_problems(queues(given), given["cypress_root"]),
        *_proxy_problems(given["yt_proxy"]),
        *pair_problems(options),
    ]


def command(options: Answers, *, prompts: bool = False) -> str:
    """Return one line for a POSIX shell that gives these options; with prompts it asks again."""
    words = [f"{name}={typed(value)}" for name, value in options.items()]
    flags = [] if prompts else ["--no-input"]
    return shlex.join(["cookiecutter", str(TEMPLATE), *flags, *words])


def kept(options: Answers, wrong: list[str]) -> list[str]:
    """Return a line with the command that keeps the good answers; none where a problem has one."""
    if any("cookiecutter " in problem for problem in wrong):
        return []
    named = {re.split(r"[ :]", problem)[0] for problem in wrong}
    good = {name: value for name, value in options.items() if name not in named}
    asked = " ".join(f"{name}=..." for name in options if name in named)
    return [f"to keep the other answers, type: {command(good)} {asked}".rstrip()]


def unknown(words: list[str], options: Answers) -> list[tuple[str, dict[str, str]]]:
    """Return a line for each NAME=VALUE on cookiecutter's command line that is not an option.

    Beside it is the option that was meant, if one is near, with that value. cookiecutter itself
    drops such a word without a message.
    """
    found = []
    for name, value in on_command_line(words).items():
        if name not in options:
            nearest = difflib.get_close_matches(name, options, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"give {', '.join(options)}"
            found.append((f"{name} is not an option; {hint}", dict.fromkeys(nearest, value)))
    return found


def on_command_line(words: list[str]) -> dict[str, str]:
    """Return the NAME=VALUE words of cookiecutter's command line; of another command none."""
    if "cookiecutter" not in Path(words[0]).parent.name + Path(words[0]).name:
        return {}
    pairs = (word.partition("=") for word in words[1:])
    return {name: value for name, is_given, value in pairs if is_given and _NAME.fullmatch(name)}


def typed(value: str) -> str:
    """Return ``value`` as it has to be given to cookiecutter, on one line.

    cookiecutter renders Jinja in the values of its command line and its API, and a line break would
    break the line: such a value is given as a Jinja string, which renders to it.
    """
    if value.isprintable() and not re.search(r"\{[{%#]", value):
        return value
    return "{{ " + ascii(value) + " }}"


def _unusable(options: Answers) -> Iterator[str]:
    for name, value in options.items():
        if not value.strip():
            yield f"{name} is empty; give it a value, or leave it out to take the default"
        # Python decodes arguments that are not UTF-8 into lone surrogates, which no file can hold.
        elif any("\ud800" <= character <= "\udfff" for character in value):
            yield f"{name} is not UTF-8 text; type it in a terminal that sends UTF-8"


def _slug_problems(value: str) -> Iterator[str]:
    package = value.replace("-", "_")
    if not _SLUG.fullmatch(value):
        yield (
            f"project_slug {_shown(value)} cannot name a package; give lower-case letters a-z,"
            " digits and single - or _ between them, a letter first, such as my-job"
        )
    elif len(value) > LONGEST_SLUG:
        yield f"project_slug has {len(value)} characters; give at most {LONGEST_SLUG}"
    elif keyword.iskeyword(package):
        yield f"project_slug {_shown(value)} is a Python keyword; give another: {value}-job"
    else:
        for names, what in (
            (_STANDARD_LIBRARY, "a module of the standard library"),
            (_INSTALLED, "a package that the project installs"),
            (_FOLDERS, "a folder or module of the project"),
        ):
            if package in names or (names is _FOLDERS and package.startswith("test_")):
                yield (
                    f"project_slug {_shown(value)}: the package {package} would hide {what};"
                    f" give another: {value}-job"
                )
                return


def _path_problems(paths: list[str], root: str) -> Iterator[str]:
    for option, path in [*(("queue_paths", path) for path in paths), ("cypress_root", root)]:
        if not _is_plain(path):
            yield f"{option}: {_shown(path)} is not a plain Cypress path; {_PATH_EXPECTED}"
    for path in sorted({first for first, second in pairwise(paths) if first == second}):
        yield f"queue_paths: {_shown(path)} is there more than once; name each queue once"
    for first, second in combinations(sorted(set(paths)), 2):
        if _inside(second, first):
            yield (
                f"queue_paths: {_shown(second)} lies inside {_shown(first)}, but a queue is a table"
                " and holds nothing; name two tables"
            )
    for path in dict.fromkeys(paths) if _is_plain(root) else ():
        if path == root or _inside(path, root):
            yield (
                f"cypress_root: {_shown(root)} {'is' if path == root else 'holds'} the queue"
                f" {_shown(path)}; give the job a folder of its own, which may be removed without"
                " losing a queue"
            )
        elif _inside(root, path):
            yield (
                f"cypress_root: {_shown(root)} lies inside the queue {_shown(path)}, which is a"
                " table; give the job a folder of its own"
            )


def _inside(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _proxy_problems(value: str) -> Iterator[str]:
    match = _PROXY.fullmatch(value)
    if not match:
        yield (
            f"yt_proxy {_shown(value)} is not an address; give a cluster's name, a host or"
            " host:port (yt.example.com:80), with http:// or https:// if need be, without a path"
        )
    elif match["port"] and not 1 <= int(match["port"]) <= 65535:
        yield f"yt_proxy {_shown(value)}: no port {match['port']}; give one from 1 to 65535"


def pair_problems(options: Answers, *, prompts: bool = False) -> Iterator[str]:
    """Yield why the guarantee does not go with the processing, and a command that gives what does.

    With ``prompts``, the command asks the rest.
    """
    processing = options["processing"]
    if why := _pair_problem(options["guarantee"], processing):
        answered = {name: value for name, value in options.items() if not name.startswith("_")}
        fitting = command({**answered, "guarantee": "transactional"}, prompts=prompts)
        yield (f"{why}; transactional is exactly once for {processing} too, so type: {fitting}")


def _shown(value: str) -> str:
    """Return the value in quotes, on one line, with readable letters."""
    return json.dumps(value, ensure_ascii=False)
