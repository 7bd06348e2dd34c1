"""The configuration: every key is read or refused, and a refusal names the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.helpers import refusal
from ytstream.settings.job_settings import Settings, load, token

GOOD = """
proxy = "cluster.example.net"
queues = ["//home/b", "//home/a"]
consumer = "//home/job/consumer"
checkpoint = "//home/job/checkpoint"
ledger = "//home/job/ledger"
"""
OUTPUTS = """
[outputs]
output = "//home/job/output"
"""


def _load(folder: Path, line: str = "", *, environment: dict[str, str] | None = None) -> Settings:
    path = folder / "job.toml"
    path.write_text(f"{GOOD}{line}\n{OUTPUTS}", encoding="utf-8")
    return load(path, environment or {})


def _load_text(folder: Path, text: str) -> Settings:
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, {})


def test_outputs_are_named_paths_and_the_first_has_a_name_of_its_own(tmp_path: Path) -> None:
    settings = _load(tmp_path)
    assert settings.outputs == {"output": "//home/job/output"}
    assert settings.output == "//home/job/output"
    assert settings.checkpoint_uri == "yt:///home/job/checkpoint"


def test_a_file_may_begin_with_the_mark_that_some_editors_write(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(f"{GOOD}{OUTPUTS}", encoding="utf-8-sig")
    assert _load_text(tmp_path, '\ufeffextends = "base.toml"').queues == ("//home/a", "//home/b")


def test_queues_are_sorted_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    assert _load(tmp_path).queues == ("//home/a", "//home/b")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("trigger_second = 5", "unknown key 'trigger_second'; did you mean 'trigger_seconds'"),
        ('output = "//home/job/output"', "unknown key 'output'; did you mean 'outputs'"),
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
        ('reference = "home/job/reference"', "plain Cypress path"),
        ("reference_refresh = 0", "wanted a number of seconds"),
        ("[spark]\nspark.executor.memory = [1]", "wanted Spark settings"),
        ('[spark]\nexecutor.memory = "8g"', "wanted Spark settings"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    assert said in refusal(lambda: _load(tmp_path, line))


def test_spark_settings_are_read_by_their_whole_keys(tmp_path: Path) -> None:
    lines = """[spark]
spark.executor.memory = "8g"
spark.executor.cores = 2
"spark.eventLog.enabled" = true
"""
    assert _load(tmp_path, lines).spark_confs == {
        "spark.executor.memory": "8g",
        "spark.executor.cores": "2",
        "spark.eventLog.enabled": "true",
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"//home/job/consumer"', '"//home/job/"', "plain Cypress path"),
        ('"//home/job/consumer"', '"home/job/consumer"', "plain Cypress path"),
        ('"//home/job/consumer"', '"//home/job/output"', "named twice"),
        ('"//home/job/ledger"', '"//home/job/output"', "named twice"),
        ('"//home/job/ledger"', '"//home/job/checkpoint/1"', "1 is inside //home/job/checkpoint"),
        ('"//home/job/output"', '"//home/job/ledger-aside/output"', "-aside is the job's own"),
        ('ledger = "//home/job/ledger"', "", "missing key 'ledger'"),
        ('"//home/job/output"', '"//home/job/checkpoint/o"', "o is inside //home/job/checkpoint"),
        ('"//home/job/output"', "5", "a table of output names and plain Cypress paths"),
        ('output = "//home/job/output"', "", "a table of output names and plain Cypress paths"),
        ("[outputs]\noutput", "outputs", "a table of output names and plain Cypress paths"),
        ("[outputs]\noutput", "[other]\noutput", "missing key 'outputs'"),
        ('"//home/b", "//home/a"', '"//home/a", "//home/a"', "named twice"),
        ('"//home/b", "//home/a"', "", "one or more"),
        ('proxy = "cluster.example.net"', "", "missing key 'proxy'"),
    ],
)
def test_paths_are_checked(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in refusal(lambda: _load_text(tmp_path, (GOOD + OUTPUTS).replace(old, new)))


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = refusal(lambda: _load(tmp_path, 'nonsense = 1\nstart_from = "x"\n'))
    assert "nonsense" in text
    assert "start_from" in text


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "gone.toml" in refusal(lambda: load(tmp_path / "gone.toml", {}))


def test_another_cluster_in_the_shell_is_refused_naming_both(tmp_path: Path) -> None:
    other = {"YT_PROXY": "other.example.net"}
    text = refusal(lambda: _load(tmp_path, environment=other))
    assert "other.example.net" in text
    assert "cluster.example.net" in text


def test_a_cluster_on_this_machine_is_taken_from_the_shell_where_that_is_allowed(
    tmp_path: Path,
) -> None:
    allowed = "allow_env_proxy = true"
    settings = _load(tmp_path, allowed, environment={"YT_PROXY": "127.0.0.1:1"})
    assert settings.proxy == "127.0.0.1:1"
    other = {"YT_PROXY": "other.example.net"}
    assert "of this machine only" in refusal(lambda: _load(tmp_path, allowed, environment=other))


def test_the_same_cluster_in_the_shell_does_not_contradict(tmp_path: Path) -> None:
    same = {"YT_PROXY": " cluster.example.net\n"}
    assert _load(tmp_path, environment=same).proxy == "cluster.example.net"


def test_a_missing_token_is_refused_and_a_given_one_is_found(tmp_path: Path) -> None:
    settings = _load(tmp_path)
    assert "YT_TOKEN" in refusal(lambda: token(settings, {}))
    assert token(settings, {"YT_SECURE_VAULT_YT_TOKEN": "vault"}) == "vault"
