"""`submit --replace` against a minicluster that runs operations; spark-submit is a script here."""

from __future__ import annotations

import os
import shlex
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import replaced_job
from tests.support.helpers import (
    refusal,
    refusal_code,
)
from tests.support.operation_steps import _of_the_template, context, ended, plan_of, running
from tests.support.simulated_driver import offsets_text, write
from ytstream.cluster import operation
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import stop_request
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.ledger.ledger_rows import Head, head_row
from ytstream.ownership import job_marker
from ytstream.provisioning import job_objects
from ytstream.version import version_of
from ytstream_tools.status import job_status, status_json, status_text
from ytstream_tools.submitting import (
    first_batch,
    launch_checks,
    launch_plan,
    replacement,
    rollback,
    spark_submit,
    submission,
    version_history,
)
from ytstream_tools.submitting.launch_plan import LaunchPlan
from ytstream_tools.submitting.replacement import ROLLED_BACK, ReplacementStep, decide
from ytstream_tools.submitting.version_history import (
    DeployedVersion,
    PendingReplacement,
    StartState,
    VersionHistory,
)

__all__ = ["_of_the_template", "context", "running"]

SPARK_SUBMIT = """
import sys
from yt import yson
from yt.wrapper import YtClient
from yt.wrapper.driver import make_formatted_request
dump, proxy, alias, given, command = sys.argv[1:]
spec = {"alias": alias, "max_failed_job_count": 10, **yson.loads(given.encode())}
spec["secure_vault"] = {"YT_TOKEN": "of-the-submit"}
spec["tasks"] = {"driver": {"command": command, "job_count": 1, "file_paths": ["//tmp/main.py"]}}
client = YtClient(proxy, token="any")
client.create("file", "//tmp/main.py", ignore_existing=True)
answer = make_formatted_request(
    "start_operation", {"operation_type": "vanilla", "spec": spec}, format=None, client=client)
open(dump, "w").write(answer["operation_id"])
"""
"""As SPYT does: starts the driver's operation with the parameters of ours, and writes its id."""


class KilledError(BaseException):
    """The submitter is gone: no handler of its own runs."""


@dataclass
class Site:
    """A repository whose next submit does ``what``, under the name of a commit."""

    context: JobContext
    folder: Path
    what: str = "works"
    commit: str = "c1"
    said: list[str] = field(default_factory=list)

    @property
    def versions(self) -> VersionHistory:
        return VersionHistory(self.context.client, self.context.settings)

    def at(self, commit: str, what: str) -> Site:
        self.commit, self.what = commit, what
        (self.folder / "main.py").write_text(f"{commit} {what}")
        return self

    def planned(self, context: JobContext, config: Path, words: Any) -> LaunchPlan:
        made = plan_of(context, self.folder, *words)
        return replace(made, commit=self.commit)

    def build(self, made: LaunchPlan, config: Path) -> None:
        made.config.write_text("")
        with zipfile.ZipFile(made.package, "w") as package:
            package.writestr("job.py", "")

    def line(self, made: LaunchPlan, dump: Path) -> list[str]:
        """Return the call of the spark-submit of this test."""
        if self.what == "refused by spark-submit":
            return [sys.executable, "-c", "import sys; sys.exit('Error: no such pool')"]
        settings = made.settings
        given = [settings.proxy, settings.ledger, settings.consumer, self.what]
        path = f"PYTHONPATH={shlex.quote(os.pathsep.join(sys.path))}"
        job = shlex.join([sys.executable, str(Path(replaced_job.__file__)), *given])
        parameters = launch_plan.parameters(made)["spark.ytsaurus.driver.operation.parameters"]
        words = [str(dump), settings.proxy, settings.alias, parameters, f"{path} {job}"]
        return [sys.executable, "-c", SPARK_SUBMIT, *words]

    def submit(self) -> str:
        record = version_history.StoredStartRecord(self.versions)
        return submission.submit(
            self.context, Path("c.toml"), (), self.said.append, launch_checks.LOOKS, record
        )

    def replace(self, *, force: bool = False) -> int:
        self.said.clear()
        return replacement.run(self.context, Path("c.toml"), (), self.said.append, force=force)

    def runs(self) -> operation.Operation:
        """Return the operation that runs."""
        found = operation.get(self.context.client, alias=self.context.settings.alias)
        assert found is not None
        assert not found.is_final, found
        return found

    def states(self) -> list[tuple[str, str]]:
        """Return commit and state of each version, the oldest first."""
        return [(one.commit, one.state) for one in reversed(self.versions.all())]


@pytest.fixture
def site(context: JobContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a repository for a job that has run before, without Spark."""
    submit_part = replace(context.settings.submit, replace_seconds=6.0)
    made = replace(context, settings=replace(context.settings, submit=submit_part))
    here = Site(made, tmp_path)
    monkeypatch.setattr(launch_plan, "plan_of", here.planned)
    monkeypatch.setattr(launch_plan, "build", here.build)
    monkeypatch.setattr(spark_submit, "command", here.line)
    monkeypatch.setattr(first_batch, "_POLL_SECONDS", 0.1)
    monkeypatch.setattr(stop_request, "_POLL_SECONDS", 0.1)
    monkeypatch.setattr(stop_request, "END_SECONDS", 3.0)
    found = positions.read(made.client, made.settings)
    head = Head(
        1, "process 1 on a laptop, abc", 1,
        ends={queue.path: {0: 0} for queue in found.queues},
        ids={queue.path: queue.id for queue in found.queues},
        marker=job_marker.marker_of(made),
    )  # fmt: skip
    made.client.insert_rows(made.settings.ledger, [head_row(head)])
    return here


# What is decided, as values


def _plan(commit: str, files: str = "f", configuration: str = "g") -> Any:
    class Made:
        identity = {"files": files, "configuration": configuration}  # noqa: RUF012

    made: Any = Made()
    made.commit = commit
    return made


def _version(key: str, state: StartState, commit: str = "", **note: str) -> DeployedVersion:
    given = {"commit": commit or key, "files": "f", "configuration": "g", **note}
    return DeployedVersion(key, state, given, operation=f"op-{key}", started=key)


def test_a_version_that_runs_and_works_is_left_alone() -> None:
    mine = _version("b", StartState.WORKS)
    assert decide(_plan("b"), mine, [mine], None, force=False).step == ReplacementStep.NOTHING
    assert decide(_plan("b"), mine, [mine], None, force=True) == replacement.ReplacementDecision(
        ReplacementStep.START, mine
    )


@pytest.mark.parametrize("part", ["files", "configuration"])
def test_other_files_or_another_configuration_are_another_version(part: str) -> None:
    """A commit with changes has the same name as the next one with others."""
    mine = _version("b", StartState.WORKS, **{part: "other"})
    assert decide(_plan("b"), mine, [mine], None, force=False).step == ReplacementStep.START


def test_what_has_not_shown_that_it_works_is_nothing_to_come_back_to() -> None:
    old, new = _version("a", StartState.WORKS), _version("b", StartState.STARTED)
    begun = PendingReplacement("a", "f", "g")
    assert decide(_plan("c"), new, [new, old], begun, force=False).former == old
    assert decide(_plan("c"), new, [new, old], None, force=False).former is None
    assert decide(_plan("c"), new, [new, old], begun, force=True).former == old
    assert decide(_plan("b"), new, [new, old], begun, force=False).step == ReplacementStep.WAIT


def test_a_refused_version_is_refused_again_until_it_is_forced() -> None:
    old, bad = _version("a", StartState.WORKS), _version("b", StartState.REFUSED)

    def again() -> None:
        decide(_plan("b"), old, [bad, old], None, force=False)

    assert "FORCE=1 tries it again. Nothing was stopped" in refusal(again)
    assert decide(_plan("b"), old, [bad, old], None, force=True).step == ReplacementStep.START
    # A later start of it has worked.
    good = _version("c", StartState.WORKS, "b")
    assert (
        decide(_plan("b"), old, [good, bad, old], None, force=False).step == ReplacementStep.START
    )


def test_a_roll_back_that_was_cut_off_goes_on() -> None:
    old, bad = _version("a", StartState.WORKS), _version("b", StartState.REFUSED)
    begun = PendingReplacement("a", "f", "g")
    assert decide(_plan("b"), None, [bad, old], begun, force=False).step == ReplacementStep.BACK


# The stories of the page


@pytest.mark.slow
def test_a_new_version_takes_the_place_of_the_old_one(site: Site) -> None:
    site.submit()
    first = site.runs()
    assert site.replace() == 0
    assert site.said[-1].startswith(f"nothing to do: operation {first.id} runs this version")
    assert site.runs().id == first.id
    assert site.at("c2", "works").replace() == 0
    second = site.runs()
    assert ended(site.context, first.id).state == "completed"  # asked, not aborted
    assert site.said[-1] == "this version runs: commit c2"
    assert "s between two batches, by part: the previous version's end" in site.said[-2]
    assert site.states() == [("c1", StartState.WORKS), ("c2", StartState.WORKS)]
    assert site.versions.all()[1].how == "replaced by commit c2"
    assert site.versions.replacing() is None
    shown = status_text.status(site.context)
    assert f"operation {second.id}: running" in shown
    assert "replaced by commit c2" in shown
    listed = status_json.document(site.context, job_status.read(site.context))["versions"]
    assert [(one["commit"], one["state"]) for one in listed] == [
        ("c2", StartState.WORKS),
        ("c1", StartState.WORKS),
    ]


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    "what", ["fails", pytest.param("refused by spark-submit", marks=pytest.mark.journey)]
)
def test_the_former_version_comes_back_and_the_refused_one_is_remembered(
    site: Site, what: str
) -> None:
    site.submit()
    first = site.runs()
    assert site.at("c2", what).replace() == ROLLED_BACK
    back = site.runs()
    assert back.id != first.id
    assert back.note["commit"] == "c1"
    assert "commit c2 was refused, commit c1 is running again" in site.said[-1]
    assert site.states() == [
        ("c1", StartState.WORKS),
        ("c2", StartState.REFUSED),
        ("c1", StartState.WORKS),
    ]
    reason = {"fails": "its first attempt failed: ", "refused by spark-submit": "no such pool"}[
        what
    ]
    assert reason in site.versions.all()[1].how  # `status` shows it
    assert refusal_code(site.replace) == ErrorCode.VERSION_REFUSED
    assert site.runs().id == back.id
    site.at("c2", "works")  # its cause is gone; the files are others, too
    assert site.replace(force=True) == 0
    assert site.states()[-1] == ("c2", StartState.WORKS)


@pytest.mark.journey
def test_a_version_without_a_batch_is_given_up_after_replace_seconds(site: Site) -> None:
    site.submit()
    assert site.at("c2", "hangs").replace() == ROLLED_BACK
    assert any("no batch within 6 s" in line for line in site.said)
    assert site.runs().note["commit"] == "c1"


@pytest.mark.journey
def test_where_nothing_runs_a_replacement_is_a_submit(site: Site) -> None:
    assert site.replace() == 0
    assert site.states() == [("c1", StartState.WORKS)]
    site.context.client.abort_operation(site.runs().id, message="a person")
    text = refusal(site.at("c2", "fails").replace)
    assert "the driver did not reach its first batch" in text
    assert site.states()[-1] == ("c2", StartState.FAILED)  # there was nothing to come back to
    assert refusal_code(site.replace) == ErrorCode.FIRST_BATCH  # tried again


@pytest.mark.journey
def test_a_secret_is_exchanged_by_a_forced_replacement(site: Site) -> None:
    site.submit()
    first = site.runs()
    assert site.replace(force=True) == 0
    assert site.runs().id != first.id
    assert site.states() == [("c1", StartState.WORKS), ("c1", StartState.WORKS)]


# What is refused before anything is stopped


def _new_queue(site: Site) -> JobContext:
    settings, new = site.context.settings, f"{site.context.settings.queues[0]}-more"
    more = replace(site.context, settings=replace(settings, queues=(*settings.queues, new)))
    job_objects.provision(more)
    return more


def _other_output(site: Site) -> JobContext:
    settings = site.context.settings
    outputs = {name: f"{path}-2" for name, path in settings.outputs.items()}
    other = replace(site.context, settings=replace(settings, outputs=outputs))
    job_objects.provision(other)
    return other


def _other_checkpoint(site: Site) -> JobContext:
    settings = site.context.settings
    return replace(site.context, settings=replace(settings, checkpoint=f"{settings.checkpoint}2"))


def _other_key(site: Site) -> JobContext:
    job = site.context.job
    first, *others = job.output_columns["output"]
    keyed = [replace(first, key=True, required=True), *others]
    return replace(site.context, job=replace(job, outputs={**job.outputs, "output": keyed}))


def _missing_table(site: Site) -> JobContext:
    settings, job = site.context.settings, site.context.job
    outputs = {**job.outputs, "totals": job.outputs["output"]}
    paths = {**settings.outputs, "totals": f"{settings.output}-totals"}
    settings = replace(settings, outputs=paths)
    return replace(site.context, settings=settings, job=replace(job, outputs=outputs))


def _other_partitions(site: Site) -> JobContext:
    """The state of the running version is in two partitions, as its last batch was planned."""
    settings, job = site.context.settings, site.context.job
    planned = offsets_text([{0: 7}], site.context.session_settings(version_of("pyspark")))
    write(site.context.client, f"{settings.checkpoint}/1/offsets/0", planned)
    return replace(site.context, job=replace(job, shuffle_partitions=3))


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("context", "change", "said"),
    [
        ("map", _new_queue, "would be new to the job: the running version could not be restored"),
        ("map", _other_output, "stop the job, run `migrate`"),
        ("map", _other_checkpoint, "and that of the running version is"),
        ("map", _other_key, "output: the table's key columns are "),
        ("map", _missing_table, "-totals: missing"),
        ("window", _other_partitions, "the job's shuffle_partitions is 3"),
    ],
    indirect=["context"],
)
def test_a_version_that_the_former_could_not_follow_is_refused_first(
    site: Site, change: Callable[[Site], JobContext], said: str
) -> None:
    site.submit()
    first = site.runs()
    site.at("c2", "works").context = change(site)
    text = refusal(site.replace)
    assert "nothing was started" in text
    assert said in text
    assert not ended_already(site, first.id)
    assert site.versions.replacing() is None


def ended_already(site: Site, id_: str) -> bool:
    found = operation.get(site.context.client, id_)
    return found is None or found.is_final


@pytest.mark.thorough
@pytest.mark.slow
def test_a_former_version_whose_files_are_gone_is_not_stopped(site: Site) -> None:
    site.submit()
    first = site.runs()
    site.context.client.remove("//tmp/main.py")
    text = refusal(site.at("c2", "works").replace)
    assert "could not be restored: its file //tmp/main.py is gone" in text
    assert site.runs().id == first.id


@pytest.mark.journey
def test_a_process_that_no_operation_runs_is_not_replaced(site: Site) -> None:
    from ytstream.instance.lock import InstanceLock

    lock = InstanceLock(site.context.client, site.context.settings.consumer)
    lock.acquire(print)
    try:
        assert refusal_code(site.replace) == ErrorCode.PREFLIGHT
    finally:
        lock.release()


@pytest.mark.thorough
@pytest.mark.slow
def test_two_replacements_at_once_are_one(site: Site) -> None:
    with replacement._only(site.context):
        text = refusal(site.replace)
    assert text.startswith("another `submit --replace` of this job is running: ")


# A submitter that dies

STEPS: list[tuple[Any, str]] = [
    (VersionHistory, "replace"),
    (stop_request, "stop"),
    (VersionHistory, "end"),
    (submission, "_hand_over"),
    (VersionHistory, "write"),
    (submission, "_undo"),
    (rollback, "start"),
]
"""Every step that changes something on the cluster: where it is, and its name."""


LENGTH = {"works": 8, "fails": 13}
"""How many of them a replacement takes whose new version works, or fails."""


def _dying(monkeypatch: pytest.MonkeyPatch, at: int, *, after: bool) -> list[str]:
    """Let the submitter die before or after its step number ``at``; return the steps so far."""
    done: list[str] = []

    def dying(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            done.append(name)
            is_last = len(done) - 1 == at
            if is_last and not after:
                raise KilledError
            found = step(*given, **more)
            if is_last:
                raise KilledError
            return found

        return call

    for owner, name in STEPS:
        monkeypatch.setattr(owner, name, dying(name, getattr(owner, name)))
    return done


def _killed_and_repeated(
    site: Site, monkeypatch: pytest.MonkeyPatch, at: int, *, after: bool
) -> bool:
    """Kill a replacement at a step, and run it again; False: it has no such step."""
    with monkeypatch.context() as patch:
        _dying(patch, at, after=after)
        try:
            site.replace()
        except KilledError:
            pass
        else:
            return False
    try:
        code = site.replace()
    except JobError as error:  # it was over but for the last line
        code = ROLLED_BACK if "was refused at" in error.message else 1
    wanted = ("c2", 0) if site.what == "works" else ("c1", ROLLED_BACK)
    assert (site.runs().note["commit"], code) == wanted
    assert site.versions.replacing() is None
    kept = [
        one
        for one in site.versions.all()
        if not version_history.now(site.context.client, one).ended
    ]
    assert [one.operation for one in kept] == [site.runs().id]
    assert kept[0].state == StartState.WORKS
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "at"), [pytest.param("works", 3, marks=pytest.mark.journey), ("fails", 7)]
)
def test_a_submitter_that_died_is_followed_by_the_next_one(
    site: Site, monkeypatch: pytest.MonkeyPatch, what: str, at: int
) -> None:
    site.submit()
    site.at("c2", what)
    assert _killed_and_repeated(site, monkeypatch, at, after=True)


@pytest.mark.journey
@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize(
    ("what", "at"), [(what, at) for what, steps in LENGTH.items() for at in range(steps + 1)]
)
def test_a_submitter_may_die_at_each_of_its_steps(
    site: Site, monkeypatch: pytest.MonkeyPatch, what: str, at: int, after: bool
) -> None:
    site.submit()
    site.at("c2", what)
    is_step = _killed_and_repeated(site, monkeypatch, at, after=after)
    assert is_step == (at < LENGTH[what])  # the last number is behind the last step
