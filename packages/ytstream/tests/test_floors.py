"""The floors of the runtime: imports go down only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import ytstream
from tests.support.imports import arrows, circles, upward

RUNTIME = Path(ytstream.__file__).parent

#: The lowest first; "" is what a job imports, `from ytstream import Job`.
FLOORS = (
    (
        "entry",
        "environment",
        "errors",
        "job_rules",
        "latest",
        "layout",
        "log",
        "table",
        "version",
    ),
    ("addresses", "confs", "java", "pairs", "plain_path", "positions", "strings", "toml_file"),
    ("os_user", "rules"),
    ("submit_settings",),
    ("columns", "config", "repository", "shipped"),
    ("sizes",),
    ("cluster", "resharding", "schema"),
    ("connector",),
    ("ledger", "mounting", "plan", "tablets", "user_state"),
    ("operation",),
    ("own_operation",),
    ("job",),
    ("", "user_errors", "declaration", "guarantees", "recovery"),
    ("provision",),
    ("capacity", "conditions"),
    ("demo", "query"),
    ("submitting",),
    ("operating",),
    ("doctor",),
    ("testing",),
    ("__main__", "cli"),
)


#: What Spark, PySpark and SPYT do not document.
INTERNALS = re.compile(
    r"\._(jdf|jvm|jsq|jsparkSession|gateway|value_schema)\b|_make_type_verifier"
    r"|\.jvm\b(?! import)|org[.]apache|tech[.]ytsaurus[.](spyt|core|ysontree)"
    r"|__spyt_|scala[.]"
)
#: How PySpark starts a JVM; the name of a class as the value of a setting; the Java client; names
#: that jobs by hand have in their text.
OTHER_PLACES = {"query/jvm.py", "tablets.py", "doctor/positions.py"}


def test_internals_of_spark_and_spyt_are_touched_in_one_folder() -> None:
    found = {
        str(path.relative_to(RUNTIME)): INTERNALS.findall(path.read_text(encoding="utf-8"))
        for path in RUNTIME.rglob("*.py")
    }
    touching = {name for name, internals in found.items() if internals} - OTHER_PLACES
    assert {str(Path(name).parent) for name in touching} == {"connector"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(arrows(RUNTIME)) == []


def test_imports_go_down_only() -> None:
    assert [str(arrow) for arrow in upward(arrows(RUNTIME), FLOORS)] == []


def test_what_looks_at_the_cluster_alone_imports_no_spark() -> None:
    """`status` answers in a second; SPYT imports pandas, and takes longer than the rest."""
    seen = "print(*sys.modules.keys() & {'pyspark', 'spyt', 'pandas', 'numpy'})"
    script = f"import sys, ytstream.cli; {seen}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
