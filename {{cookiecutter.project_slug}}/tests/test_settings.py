"""The configuration: what is read, what is refused, and that the refusal names the remedy."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from conftest import CONFIG, Module

GOOD = """
proxy = "cluster.example.net"
queues = ["//home/b", "//home/a"]
consumer = "//home/job/consumer"
output = "//home/job/output"
checkpoint = "//home/job/checkpoint"
"""


def _load(
    module: Module, folder: Path, text: str, environment: dict[str, str] | None = None
) -> object:
    settings = module("settings")
    # What else this job's kind of processing wants: more paths.
    more = [
        f'{key.name} = "//home/job/{key.name}"\n'
        for key in fields(settings.Settings)
        if key.default is MISSING and f"\n{key.name} = " not in GOOD
    ]
    path = folder / "job.toml"
    path.write_text(text + "\n" + "".join(more), encoding="utf-8")
    return settings.load(path, environment or {})


@pytest.mark.parametrize("name", ["local.toml", "production.toml"])
def test_the_files_that_come_with_the_job_are_valid(module: Module, name: str) -> None:
    settings = module("settings").load(CONFIG.parent / name, {})
    assert settings.create_queues == settings.allow_env_proxy == (name == "local.toml")


def test_queues_are_sorted_whatever_their_order_in_the_file(module: Module, tmp_path: Path) -> None:
    assert _load(module, tmp_path, GOOD).queues == ("//home/a", "//home/b")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("trigger_second = 5", "unknown key 'trigger_second'"),
        ("trigger_seconds = 0", "wanted a number of seconds"),
        ("max_rows_per_partition = true", "wanted a whole number"),
        ('dyn_batch_size = "many"', "wanted a whole number"),
        ("dyn_batch_size = 100001", "from 1 to 100000"),
        ('start_from = "middle"', "wanted one of: earliest, latest"),
        ('on_data_loss = "ignore"', "wanted one of: fail, skip"),
        ('create_queues = "yes"', "wanted true or false"),
        ("accept = [1]", "wanted a list of texts"),
        ('proxy_role = ""', "not empty"),
        ("this is no TOML", "not valid TOML"),
    ],
)
def test_a_bad_line_is_named(module: Module, tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(module("errors").JobError, match=said):
        _load(module, tmp_path, f"{GOOD}{line}\n")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"//home/job/consumer"', '"//home/job/"', "plain Cypress path"),
        ('"//home/job/consumer"', '"home/job/consumer"', "plain Cypress path"),
        ('"//home/job/consumer"', '"//home/job/output"', "named twice"),
        ('"//home/job/output"', '"//home/job/checkpoint/o"', "o is inside //home/job/checkpoint"),
        ('"//home/b", "//home/a"', '"//home/a", "//home/a"', "named twice"),
        ('"//home/b", "//home/a"', "", "one or more"),
        ('proxy = "cluster.example.net"', "", "missing key 'proxy'"),
    ],
)
def test_paths_are_checked(module: Module, tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(module("errors").JobError, match=said):
        _load(module, tmp_path, GOOD.replace(old, new))


def test_all_problems_are_reported_at_once(module: Module, tmp_path: Path) -> None:
    with pytest.raises(module("errors").JobError) as caught:
        _load(module, tmp_path, f'{GOOD}nonsense = 1\nstart_from = "x"\n')
    assert "nonsense" in str(caught.value)
    assert "start_from" in str(caught.value)


def test_a_file_that_is_not_there_is_named(module: Module, tmp_path: Path) -> None:
    with pytest.raises(module("errors").JobError, match=r"gone\.toml"):
        module("settings").load(tmp_path / "gone.toml", {})


def test_another_cluster_in_the_shell_is_refused_naming_both(
    module: Module, tmp_path: Path
) -> None:
    with pytest.raises(module("errors").JobError) as caught:
        _load(module, tmp_path, GOOD, {"YT_PROXY": "other.example.net"})
    assert "other.example.net" in str(caught.value)
    assert "cluster.example.net" in str(caught.value)


def test_the_same_cluster_in_the_shell_is_no_contradiction(module: Module, tmp_path: Path) -> None:
    settings = _load(module, tmp_path, GOOD, {"YT_PROXY": " cluster.example.net\n"})
    assert settings.proxy == "cluster.example.net"  # type: ignore[attr-defined]


def test_a_missing_token_is_refused_and_a_given_one_is_found(
    module: Module, tmp_path: Path
) -> None:
    settings = _load(module, tmp_path, GOOD)
    with pytest.raises(module("errors").JobError, match="YT_TOKEN"):
        module("settings").token(settings, {})
    assert module("settings").token(settings, {"YT_SECURE_VAULT_YT_TOKEN": "vault"}) == "vault"
