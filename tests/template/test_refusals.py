"""Answers that give no working project: one clear message each, exit 1, nothing on disk."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from local_extensions.answers import RULES
from local_extensions.command_line import Call, keeping
from tests.conftest import Generate
from tests.support.examples import PAIRS
from tests.support.project import DEFAULTS, OPTIONS, ROOT, VARIANTS, problems, user_config
from tests.support.project import generate as make

NOT_IDEMPOTENT = ["window", "join", "deduplicate", "aggregate", "merge", "sessions"]

COOKIECUTTER = [sys.executable, "-m", "cookiecutter"]

# Answer, and what its refusal has to say: what is wrong, and what to do.
REFUSED: list[tuple[dict[str, str], str, str]] = [
    *(({option: ""}, f"{option} is empty", "take the default") for option in OPTIONS),
    ({"author": " \n\t"}, "author is empty", "take the default"),
    ({"author": "\udcff"}, "author is not UTF-8 text", "terminal"),
    *(
        ({option: f"x{character}y"}, f"{option} has the character {code}", "Leave it out")
        for option in ("project_name", "description", "author")
        for character, code in (
            ("\0", "U+0000 (a control character)"),
            ("\x1b", "U+001B (a control character)"),
            ("\x9b", "U+009B (a control character)"),
            ("\r", "U+000D (a control character)"),
            ("\u202e", "U+202E (right-to-left override)"),
            ("\u2066", "U+2066 (left-to-right isolate)"),
            ("\u2028", "U+2028 (line separator)"),
        )
    ),
    ({"queue_paths": "//home/a\x1b[2J"}, "queue_paths has the character U+001B", "Leave it out"),
    ({"project_slug": "My-Job"}, 'project_slug "My-Job" cannot name a package', "such as my-job"),
    ({"project_slug": "ставки"}, 'project_slug "ставки" cannot', "letters a-z"),
    ({"project_slug": "1job"}, 'project_slug "1job" cannot', "a letter first"),
    ({"project_slug": "a--b"}, 'project_slug "a--b" cannot', "single - or _"),
    ({"project_slug": "-a"}, 'project_slug "-a" cannot', "a letter first"),
    ({"project_slug": "a-"}, 'project_slug "a-" cannot', "between them"),
    ({"project_slug": "a.b"}, 'project_slug "a.b" cannot', "between them"),
    ({"project_slug": "../up"}, 'project_slug "../up" cannot', "letters a-z"),
    ({"project_slug": "a\n"}, 'project_slug "a\\n" cannot', "letters a-z"),
    ({"project_slug": "a" * 65}, "65 characters", "at most 64"),
    ({"project_slug": "lambda"}, "is a Python keyword", "lambda-job"),
    ({"project_slug": "json"}, "hide a module of the standard library", "json-job"),
    ({"project_slug": "test"}, "hide a module of the standard library", "test-job"),
    ({"project_slug": "pyspark"}, "hide a package that the project installs", "pyspark-job"),
    ({"project_slug": "ytsaurus-client"}, "hide a package", "ytsaurus-client-job"),
    ({"project_slug": "yt"}, "hide a package", "yt-job"),
    ({"project_slug": "minicluster"}, "hide a folder or module of the project", "minicluster-job"),
    ({"queue_paths": "home/a"}, 'queue_paths: "home/a" is not a plain', "//home/team/job"),
    ({"queue_paths": "/home/a"}, 'queue_paths: "/home/a" is not', "absolute"),
    ({"queue_paths": "//home/a/"}, 'queue_paths: "//home/a/" is not', "none at the end"),
    ({"queue_paths": "//home//a"}, 'queue_paths: "//home//a" is not', "single slashes"),
    ({"queue_paths": "//"}, 'queue_paths: "//" is not', "absolute"),
    ({"queue_paths": "//home/a/@x"}, 'queue_paths: "//home/a/@x" is not', "no attributes"),
    ({"queue_paths": "<append=%true>//home/a"}, "queue_paths:", "no attributes"),
    ({"queue_paths": "//home/a[#1:#2]"}, "queue_paths:", "ranges"),
    ({"queue_paths": "//home/*"}, "queue_paths:", "wildcards"),
    ({"queue_paths": "//home/a&"}, "queue_paths:", "letters a-z"),
    ({"queue_paths": "//home/a,//home/b"}, "queue_paths:", "letters a-z"),
    ({"queue_paths": "//home/../a"}, "queue_paths:", "absolute path"),
    ({"queue_paths": "//a/b //c/d //a/b"}, '"//a/b" is there more than once', "each queue once"),
    ({"queue_paths": "//a/b //a/b/c"}, '"//a/b/c" lies inside "//a/b"', "two tables"),
    ({"cypress_root": "home"}, 'cypress_root: "home" is not a plain', "//home/team/job"),
    ({"cypress_root": "/"}, 'cypress_root: "/" is not a plain', "absolute"),
    ({"cypress_root": "//a b"}, 'cypress_root: "//a b" is not', "absolute"),
    ({"cypress_root": DEFAULTS["queue_paths"]}, "is the queue", "folder of its own"),
    ({"cypress_root": "//home"}, 'holds the queue "//home/ytstream/bids"', "folder of its own"),
    ({"cypress_root": "//home/ytstream/bids/job"}, "lies inside the queue", "folder of its own"),
    ({"cypress_root": "//sys"}, '"//sys" belongs to the cluster itself', "//home/team/job"),
    ({"queue_paths": "//sys/a"}, '"//sys/a" belongs to the cluster itself', "of your own"),
    ({"yt_proxy": "a b"}, 'yt_proxy "a b" is not an address', "host:port"),
    ({"yt_proxy": "http://yt.example.com/api"}, "is not an address", "without a path"),
    ({"yt_proxy": "ftp://yt.example.com"}, "is not an address", "https://"),
    ({"yt_proxy": "http://yt?x=y"}, "yt_proxy is not an address", "host:port"),
    ({"yt_proxy": "user:x@yt.example.com"}, "has a user name or a token", "YT_TOKEN"),
    ({"yt_proxy": "yt:"}, "is not an address", "host:port"),
    ({"yt_proxy": "yt:0"}, "no port 0", "from 1 to 65535"),
    ({"yt_proxy": "yt:65536"}, "no port 65536", "from 1 to 65535"),
]
ACCEPTED: list[dict[str, str]] = [
    {"yt_proxy": "hahn"},
    {"yt_proxy": "localhost:8000"},
    {"yt_proxy": "https://yt.example.com:443"},
    {"yt_proxy": "10.0.0.1"},
    {"queue_paths": "//tmp/queue-1.v2 //tmp/queue_1=x"},
    {"queue_paths": "//home/ytstream/jobs"},  # shares a prefix with the root, not a folder
    {"project_slug": "a"},
    {"project_slug": "my_job2"},
]
# Free text that must be accepted as it is.
TEXTS = [
    'О\'Нил "the" best',
    "a\\b\r\n\tc",
    "נכון\u200f",
    "🚀 $(id) `id` %s {} {{ 1 + 1 }} {% raw %}",
    "-x=y",
    "'",
]


@pytest.mark.parametrize(("given", "what", "remedy"), REFUSED, ids=lambda value: repr(value)[:50])
def test_a_bad_answer_is_refused_on_one_line(
    given: Mapping[str, str], what: str, remedy: str
) -> None:
    (problem,) = problems({**DEFAULTS, **given})
    assert what in problem
    assert remedy in problem
    assert problem.isprintable()


@pytest.mark.parametrize("given", ACCEPTED, ids=repr)
def test_a_good_answer_is_not_refused(given: Mapping[str, str]) -> None:
    assert problems({**DEFAULTS, **given}) == []


@pytest.mark.parametrize("option", ["project_name", "description", "author"])
@pytest.mark.parametrize("text", TEXTS)
def test_free_text_is_not_refused(option: str, text: str) -> None:
    assert problems({**DEFAULTS, option: text}) == []


def test_of_many_problems_with_one_option_the_first_are_told() -> None:
    many = " ".join(f"/home/{number}" for number in range(2000))
    found = problems({**DEFAULTS, "queue_paths": many, "cypress_root": "b"})
    assert found[-1] == "queue_paths: 1995 more"
    assert len(found) == 7


def test_all_problems_are_told_at_once() -> None:
    bad = {"project_slug": "json", "queue_paths": "a", "cypress_root": "b", "yt_proxy": "c d"}
    found = problems({**DEFAULTS, **bad})
    assert [re.match(r"\w+", problem)[0] for problem in found] == list(bad)  # type: ignore[index]


def test_no_package_may_hide_an_installed_module() -> None:
    for module in filter(str.isidentifier, packages_distributions()):
        given = {**DEFAULTS, "project_slug": module.lower()}
        assert problems(given), f"{module} is installed: add it to answers._MODULES"


@pytest.mark.parametrize("processing", NOT_IDEMPOTENT)
def test_idempotent_goes_with_map_only(processing: str) -> None:
    given = {**DEFAULTS, "guarantee": "idempotent", "processing": processing}
    (problem,) = problems(given)
    assert f"map only, not with {processing}: " in problem
    assert problem.endswith(f"transactional is exactly once for {processing} too")


def test_a_total_needs_the_transaction() -> None:
    """Its key is the user's own: older totals written late would stay."""
    given = {**DEFAULTS, "guarantee": "at_least_once", "processing": "aggregate"}
    (problem,) = problems(given)
    assert problem.startswith("processing aggregate goes with guarantee transactional only")
    assert RULES["impossible"]["at_least_once"]["reasons"]["aggregate"] in problem


def test_the_other_pairs_are_offered() -> None:
    """Those that the runtime accepts, by its own list and test_validation.py."""
    assert {variant[:2] for variant in VARIANTS} == {*PAIRS}


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_the_suggested_command_keeps_every_answer(tmp_path: Path, text: str) -> None:
    given = {
        **DEFAULTS,
        "project_name": text,
        "description": text,
        "author": text,
        "queue_paths": "//a/b //c/d",
        "spark_version": "3.5",
        "ci": "gitlab",
        "license": "MIT",
    }
    line = keeping(Call(), given, [])
    assert line.isprintable()
    config = user_config(tmp_path)
    words = f"{shlex.join(COOKIECUTTER)} --config-file {config} {line.removeprefix('cookiecutter')}"
    subprocess.run(["sh", "-c", words], cwd=tmp_path, check=True, timeout=60)
    (replay,) = (tmp_path / "replay").iterdir()
    stored = json.loads(replay.read_text(encoding="utf-8"))["cookiecutter"]
    assert {name: stored[name] for name in given} == given


def run(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run cookiecutter's command line, into ``folder / "out"``, with this typed."""
    (folder / "out").mkdir()
    return subprocess.run(
        [
            *COOKIECUTTER,
            *arguments,
            "-o",
            str(folder / "out"),
            "--config-file",
            user_config(folder),
        ],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    ["project_slug=class", "queue_paths=//a//b", "queue_paths=//a/b //a/b", "description="],
)
def test_the_command_line_names_it_keeps_the_others_and_leaves_nothing(
    tmp_path: Path, answer: str
) -> None:
    done = run(tmp_path, str(ROOT), "--no-input", answer)
    assert done.returncode == 1
    assert done.stdout == ""
    problem, kept = done.stderr.splitlines()
    option = answer.partition("=")[0]
    assert problem.startswith(f"Error: {option}")
    assert kept.startswith("to keep the other answers, type: cookiecutter ")
    assert kept.endswith(f" {option}=...")
    assert kept.count(f"{option}=") == 1
    assert list((tmp_path / "out").iterdir()) == []


def test_bytes_that_are_not_text_are_refused_too(tmp_path: Path) -> None:
    done = run(tmp_path, str(ROOT), "--no-input", "author=\udcff")
    assert (done.returncode, done.stderr.count("\n")) == (1, 2)
    assert "author is not UTF-8" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_replayed_answers_are_checked_again(tmp_path: Path) -> None:
    (first := tmp_path / "first").mkdir()
    make(first)
    (replay,) = (first / "replay").iterdir()
    replay.write_text(replay.read_text().replace("//home/ytstream/bids", "//home/ytstream//bids"))
    done = run(tmp_path, str(ROOT), "--replay-file", str(replay))
    assert done.returncode == 1
    problem, kept = done.stderr.splitlines()
    assert problem.startswith('Error: queue_paths: "//home/ytstream//bids" is not a plain Cypress')
    assert kept.startswith("to keep the other answers, type: cookiecutter ")
    assert kept.endswith(" runtime_from=wheels queue_paths=...")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.thorough
def test_what_a_replay_file_lacks_is_asked_before_the_rest_is_checked(tmp_path: Path) -> None:
    (first := tmp_path / "first").mkdir()
    make(first)
    (replay,) = (first / "replay").iterdir()
    held = json.loads(replay.read_text(encoding="utf-8"))
    del held["cookiecutter"]["author"]
    replay.write_text(json.dumps(held), encoding="utf-8")
    done = run(tmp_path, str(ROOT), "--replay-file", str(replay), stdin="Team\n")
    assert done.returncode == 0, done.stderr
    assert "Team" in (tmp_path / "out" / "bids-stream" / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "said", "fixed"),
    [
        ("garantee=idempotent", "Did you mean guarantee?", "guarantee=idempotent"),
        ("Guarantee=idempotent", "Did you mean guarantee?", "guarantee=idempotent"),
        ("Guarantee=exactly", "Did you mean guarantee?", "guarantee=..."),
        ("spark-version=3.5", "Did you mean spark_version?", "spark_version=3.5"),
        ("queuePaths=//a/b", "Did you mean queue_paths?", "queue_paths=//a/b"),
        ("QUEUE_PATHS=//a/b", "Did you mean queue_paths?", "queue_paths=//a/b"),
        ("zzz=1", "Give project_name, project_slug, ", ""),
    ],
)
def test_an_unknown_option_is_refused_by_name(
    tmp_path: Path, word: str, said: str, fixed: str
) -> None:
    done = run(tmp_path, str(ROOT), "--no-input", "author={{ 'a\\nb' }}", word)
    assert done.returncode == 1
    problem, kept = done.stderr.splitlines()
    assert problem.startswith(f"Error: {word.partition('=')[0]} is not an option. {said}")
    # The other answers as they were typed: they are not rendered yet.
    given = shlex.split(kept.partition(" type: ")[2])[5:]
    assert given == ["author={{ 'a\\nb' }}", *filter(None, [fixed])]
    assert list((tmp_path / "out").iterdir()) == []


def test_a_mistyped_option_is_refused_before_the_first_question(tmp_path: Path) -> None:
    done = run(tmp_path, str(ROOT), "garantee=idempotent")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--no-input" not in done.stderr


def test_a_home_that_cannot_keep_the_answers_is_told_in_words(tmp_path: Path) -> None:
    """Here it is a file: for root every folder can be written."""
    (home := tmp_path / "home").write_text("")
    shell = {name: value for name, value in os.environ.items() if name != "COOKIECUTTER_CONFIG"}
    command = [*COOKIECUTTER, str(ROOT), "--no-input", "-o", str(tmp_path / "out")]
    done = subprocess.run(
        command, env={**shell, "HOME": str(home)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"{home}/.cookiecutter_replay, and {home} cannot be written into" in done.stderr
    assert "set HOME" in done.stderr
    assert "Traceback" not in done.stderr


def test_options_of_the_users_own_configuration_are_not_looked_at(tmp_path: Path) -> None:
    """It serves all templates."""
    (tmp_path / "out").mkdir()
    config = user_config(tmp_path)
    given = {**json.loads(config.read_text()), "default_context": {"full_name": "A"}}
    config.write_text(json.dumps(given))
    words = [*COOKIECUTTER, str(ROOT), "--no-input", "-o", str(tmp_path / "out")]
    words += ["--config-file", str(config)]
    subprocess.run(words, check=True, capture_output=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("yt_proxy=http://user:hushed@host",),
        ("yt_proxy=https://host/?token=hushed",),
        ("yt_proxy=user:hushed@host", "project_slug=class"),
        ("yt-proxy=http://user:hushed@host",),
        ("yt_proxy=http://user:hushed@host", "garantee=idempotent"),
        ("yt_proxy=http://user:hushed@host", "guarantee=idempotent", "processing=join"),
        ("cypress_root=http://user:hushed@host/home",),
        ("queue_paths=http://user:hushed@host/home", "garantee=idempotent"),
    ],
    ids=" ".join,
)
def test_a_token_in_an_address_is_not_shown(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(tmp_path, str(ROOT), "--no-input", *words)
    assert done.returncode == 1
    assert "hushed" not in done.stdout + done.stderr
    option = words[0].partition("=")[0].replace("-", "_")
    assert f" {option}=..." in done.stderr
    assert not (tmp_path / "replay").exists()


@pytest.mark.parametrize("address", ["https://yt.example.com/", " https://yt.example.com// "])
def test_an_address_copied_from_a_browser_is_stored_without_its_slash(
    generate: Generate, address: str
) -> None:
    config = generate(yt_proxy=address) / "config/production.toml"
    assert tomllib.loads(config.read_text())["proxy"] == "https://yt.example.com"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("pair", "said", "processing"),
    [
        ("2\n2", "goes with processing map only, not with window", "window"),
        ("5\n3", "goes with guarantee transactional only, not with at_least_once", "aggregate"),
    ],
)
def test_a_pair_that_cannot_be_is_refused_before_the_next_question(
    tmp_path: Path, pair: str, said: str, processing: str
) -> None:
    (tmp_path / "out").mkdir()
    # Answers up to the guarantee: name, slug, description, author, processing, guarantee.
    done = subprocess.run(
        [*COOKIECUTTER, str(ROOT), "-o", tmp_path / "out", "--config-file", user_config(tmp_path)],
        input=f"\n\n\n\n{pair}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "queues to read" not in done.stdout
    (command,) = re.findall("answers, type: (.*)", done.stderr)
    assert "--no-input" not in command  # the rest was not asked yet
    assert {f"processing={processing}", "guarantee=transactional"} <= {*shlex.split(command)}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pair",
    [
        ("guarantee=idempotent", "processing=window"),
        ("guarantee=at_least_once", "processing=aggregate"),
    ],
)
def test_a_pair_that_cannot_be_keeps_the_answers_to_later_questions(
    tmp_path: Path, pair: tuple[str, str]
) -> None:
    later = ["cypress_root=//home/x", "yt_proxy=hahn", "ci=gitlab"]
    given = [*pair, *later]
    done = run(tmp_path, str(ROOT), "--no-input", *given)
    assert done.returncode == 1
    (command,) = re.findall("answers, type: (.*)", done.stderr)
    assert {"--no-input", "guarantee=transactional", *later} <= {*shlex.split(command)}
