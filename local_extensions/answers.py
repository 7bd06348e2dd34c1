"""The answers, checked as a whole: what is wrong, in which option, and what to do."""

from __future__ import annotations

import keyword
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from pathlib import Path

from slugify import slugify

from . import organisation, text, versions
from .problem import Problem
from .rules import RULES, pair_problem
from .text import shown

Answers = Mapping[str, str]

TEMPLATE = Path(__file__).resolve().parent.parent

FALLBACK_SLUG = "ytstream-job"
LONGEST_SLUG = 64
# Of problems with one option: two thousand queues may have as many.
MOST_LINES = 5

# A subset of PEP 508 names: with "_" for "-" it is a lower-case identifier, as the linters want it.
_SLUG = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")

_PATH = re.compile(RULES["address"]["path"])
_PATH_EXPECTED = (
    "give an absolute path such as //home/team/job: single slashes between folders, none at the"
    " end, only letters a-z, digits and _ . - + = ~ (no attributes, ranges or wildcards)"
)

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

# Modules that the environments hold besides the pinned packages: a package of the same name would
# hide one of them. A test compares this list with what is installed.
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
        *organisation.problems(options),
    ]


def shortened(problems: list[Problem]) -> list[str]:
    """Return a line for each problem; of many with one option the first, and how many more."""
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
            yield Problem(f"{name} is not text; give a string", name)
        elif not value and name in organisation.SETTINGS:
            continue
        elif not value.strip():
            what = "give it a value, or leave it out to take the default"
            yield Problem(f"{name} is empty; {what}", name)
        # Python decodes arguments that are not UTF-8 into lone surrogates, which no file can hold.
        elif any("\ud800" <= character <= "\udfff" for character in value):
            yield Problem(f"{name} is not UTF-8 text; type it in a terminal that sends UTF-8", name)
        elif hidden := text.CONTROL.search(value):
            code = f"U+{ord(hidden[0]):04X} ({text.called(hidden[0])})"
            what = "a reader does not see it, and a terminal obeys it; leave it out"
            yield Problem(f"{name} has the character {code}: {what}", name)


def _slug_problems(value: str) -> Iterator[str]:
    package = value.replace("-", "_")
    if not _SLUG.fullmatch(value):
        yield (
            f"project_slug {shown(value)} cannot name a package; give lower-case letters a-z,"
            " digits and single - or _ between them, a letter first, such as my-job"
        )
    elif len(value) > LONGEST_SLUG:
        yield f"project_slug has {len(value)} characters; give at most {LONGEST_SLUG}"
    elif keyword.iskeyword(package):
        yield f"project_slug {shown(value)} is a Python keyword; give another: {value}-job"
    else:
        for names, what in (
            (_STANDARD_LIBRARY, "a module of the standard library"),
            (_INSTALLED, "a package that the project installs"),
            (_FOLDERS, "a folder or module of the project"),
        ):
            if package in names or (names is _FOLDERS and package.startswith("test_")):
                yield (
                    f"project_slug {shown(value)}: the package {package} would hide {what};"
                    f" give another: {value}-job"
                )
                return


def _path_problems(paths: list[str], root: str) -> Iterator[Problem]:
    for option, path in [*(("queue_paths", path) for path in paths), ("cypress_root", root)]:
        if not _PATH.fullmatch(path):
            what = f"{shown(path)} is not a plain Cypress path"
            yield Problem(f"{option}: {what}; {_PATH_EXPECTED}", option)
    for problem in _queue_problems(paths):
        yield Problem(f"queue_paths: {problem}", "queue_paths")
    for problem in _root_problems(paths, root) if _PATH.fullmatch(root) else ():
        yield Problem(f"cypress_root: {shown(root)} {problem}", "cypress_root")


def _queue_problems(paths: list[str]) -> Iterator[str]:
    for path in sorted({first for first, second in pairwise(paths) if first == second}):
        yield f"{shown(path)} is there more than once; name each queue once"
    for path in sorted(set(paths)):
        *folders, _ = accumulate(path.split("/"), "{}/{}".format)
        for folder in sorted({*folders} & {*paths}):
            yield (
                f"{shown(path)} lies inside {shown(folder)}, but a queue is a table and holds"
                " nothing; name two tables"
            )


def _root_problems(paths: list[str], root: str) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        if path == root or _inside(path, root):
            yield (
                f"{'is' if path == root else 'holds'} the queue {shown(path)}; give the job a"
                " folder of its own, which may be removed without losing a queue"
            )
        elif _inside(root, path):
            yield (
                f"lies inside the queue {shown(path)}, which is a table; give the job a folder of"
                " its own"
            )


def _inside(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def proxy_problems(value: str) -> Iterator[str]:
    """Yield why this is not the address of a cluster, without showing what may be secret in it."""
    match = _PROXY.fullmatch(value)
    if "@" in value:
        yield (
            "yt_proxy has a user name or a token before the @; give the address alone: the token"
            " comes from the environment, YT_TOKEN, never from a file"
        )
    elif not match:
        what = f"yt_proxy {shown(value)}" if _NO_SECRET.fullmatch(value) else "yt_proxy"
        yield (
            f"{what} is not an address; give a cluster's name, a host or host:port"
            " (yt.example.com:80), with http:// or https:// if need be, without a path"
        )
    elif match["port"] and not 1 <= int(match["port"]) <= 65535:
        yield f"yt_proxy {shown(value)}: no port {match['port']}; give one from 1 to 65535"


def pair_problems(options: Answers) -> Iterator[Problem]:
    """Yield why the guarantee does not go with the processing, with one that does."""
    processing = options["processing"]
    if why := pair_problem(options["guarantee"], processing):
        yield Problem(
            f"{why}; transactional is exactly once for {processing} too",
            "guarantee",
            ("guarantee", "transactional"),
        )
