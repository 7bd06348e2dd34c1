"""Compiles the Java of ``jvm/`` where it runs, with the compiler that Spark carries (Janino).

The classes go into a jar: into the driver's class loader, and to the executors as `--jars` would.
Nothing must be installed, and the sources fit the Spark and the SPYT that are there. Where they
do not, the job runs on SPYT's own classes: ``unavailable`` says why. On a machine of a person the
environment keeps the jar for the next start (compiled_jar.py).
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from ..version import __version__
from . import compiled_jar
from .java import Java, jvm_of
from .pyspark_internals import aggregated, computed
from .spark_plan import execution_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


SOURCE = "ytstream.Queue"
"""What ``readStream.format()`` takes."""
OUTPUT, ADVANCE, PACE = "ytstream.Output", "ytstream.Advance", "ytstream.Pace"
"""The other classes that Python calls."""
STATE_SCHEMA = "ytstream.StateSchema"
REPLAY = "ytstream.Replay"
BACKLOG_CLOCK = "ytstream.BacklogClock"
PIECES = "ytstream.Pieces"
DRIVER_FILES = "ytstream.DriverFiles"
LOOKUP, MOMENTS = "ytstream.Lookup", "ytstream.Moments"
OBSERVED = "ytstream.ObservedStrategy"
REJECTED_ROWS = "ytstream.RejectedRows"
_OPAQUE = "ytstream.Opaque"
COUNTED, EXPIRY = "ytstream.Counted", "ytstream.ExpiryRule"
_LINES, _INSERT = "ytstream.Lines", "ytstream.Insert"
_PULL, _ATTACHED = "ytstream.Pull", "ytstream.Attached"
_COMPILER = "org.codehaus.janino.Compiler"
_NO_RESOURCES = "org.codehaus.commons.compiler.util.resource.ResourceFinder.EMPTY_RESOURCE_FINDER"


@dataclass(frozen=True)
class _Made:
    """What became of the classes in a JVM."""

    jar: Path | None
    """It stays as long as the JVM: executors fetch it at any time. None where it cannot be made."""
    problem: str = ""
    folder: TemporaryDirectory[str] | None = None
    """Where the jar is, unless the environment keeps it. Removed with this object."""


_MADE: WeakKeyDictionary[Any, _Made] = WeakKeyDictionary()
"""By JVM."""
_GIVEN: set[str] = set()
"""The applications whose executors were given the jar."""


def unavailable(spark: SparkSession) -> str:
    """Return why this session cannot use the classes; empty if it can: then it has them.

    The first call of a JVM compiles, in about a second, or takes what was compiled before.
    """
    jvm = jvm_of(spark)
    if jvm not in _MADE:
        _MADE[jvm] = _made(Java(jvm), spark.sparkContext._gateway)
    made = _MADE[jvm]
    application = spark.sparkContext.applicationId
    if made.jar is not None and application not in _GIVEN:
        spark.sparkContext._jsc.addJar(str(made.jar))
        _GIVEN.add(application)
    return made.problem


def is_loaded(java: Java) -> bool:
    """Return whether the JVM has the classes; compiles nothing."""
    return _MADE.get(java.jvm, _Made(None)).jar is not None


def advance(java: Java, transaction: Any, consumer: str, queue: str, to: Mapping[int, int]) -> None:
    """Move a consumer in several partitions of a queue at once, in a JVM that has the classes."""
    rows = " ".join(f"{partition}:{row}" for partition, row in to.items())
    name = str(transaction.getId().toString())
    java[f"{ADVANCE}.all"](transaction.getClient(), name, consumer, queue, rows)


def attached(java: Java, client: Any, transaction_id: str) -> Any:
    """Return a transaction of SPYT's, in a JVM that has the classes: tasks in it share it."""
    return java[f"{_ATTACHED}.to"](transaction_id, client)


def insert(
    java: Java, transaction: Any, path: str, schema: Any, rows: Sequence[Sequence[Any]]
) -> None:
    """Write rows in one request: values in the order of the table's columns."""
    java[f"{_INSERT}.json"](transaction, path, schema, json.dumps(rows))


def opaque(java: Java, columns: Column, rows: DataFrame) -> Column:
    """Return the text that is the one column of ``rows``, of the columns of a struct instead.

    Spark does not look into it: a long expression is prepared here, and not again for each batch.
    """
    return computed(columns, _OPAQUE, java, execution_of(rows))


def lines(java: Java, texts: Column, of_a_task: int, of_all: int) -> Column:
    """Return what observes the texts of a column as lines; none of them if they are longer."""
    return aggregated(texts, _LINES, java, of_a_task, of_all, 0, 0)


def lines_observed(java: Java, key: str) -> str | None:
    """Return lines by what was observed of them; None where they are not there any more."""
    found: str | None = java[f"{_LINES}.take"](key)
    return found


def _made(java: Java, gateway: Any) -> _Made:
    """Return the jar, now loaded; or why there is none."""
    sources = _sources()
    name = compiled_jar.name_of(
        [
            *sources,
            ("compiler", f"{_COMPILER}, ytstream {__version__}"),
            ("java", str(java["java.lang.System.getProperty"]("java.version"))),
        ]
    )
    folder = None
    try:
        if (jar := compiled_jar.found(name)) is None:
            folder = TemporaryDirectory(prefix="ytstream-connector-")
            compiled = _compiled(java, gateway, sources, Path(folder.name))
            jar = compiled_jar.kept(compiled, name)
        loader = java["java.lang.Thread.currentThread"]().getContextClassLoader()
        loader.addURL(java["java.io.File"](str(jar)).toURI().toURL())
        for needed in (OUTPUT, _PULL):  # the second looks for what it calls by reflection
            java["java.lang.Class.forName"](needed, True, loader)
    except (Py4JError, TypeError, OSError) as error:
        if folder is not None:
            folder.cleanup()
        return _Made(None, _reason(error))
    return _Made(jar, folder=folder)


def _compiled(java: Java, gateway: Any, sources: Sequence[tuple[str, str]], folder: Path) -> Path:
    """Return a jar in the folder with the classes of the sources."""
    paths = gateway.new_array(gateway.jvm.java.io.File, len(sources))
    for index, (name, text) in enumerate(sources):
        (folder / name).write_text(text, encoding="utf-8")
        paths[index] = java["java.io.File"](str(folder / name))
    classes = folder / "classes"
    classes.mkdir()
    loader = java["java.lang.Thread.currentThread"]().getContextClassLoader()
    seen = java["org.codehaus.janino.ClassLoaderIClassLoader"](loader)
    compiler = java[_COMPILER](java[_NO_RESOURCES], seen)
    compiler.setTargetVersion(8)
    compiler.setDestinationDirectory(java["java.io.File"](str(classes)), False)
    compiler.compile(paths)
    made = folder / compiled_jar.NAME
    with zipfile.ZipFile(made, "w") as jar:
        for path in sorted(classes.rglob("*.class")):
            jar.write(path, path.relative_to(classes))
    return made


def _sources() -> list[tuple[str, str]]:
    """Return name and text of each source; in the archive of a cluster it is not a file."""
    return sorted(
        (source.name, source.read_text("utf-8"))
        for source in files(__package__).joinpath("jvm").iterdir()
        if source.name.endswith(".java")
    )


def _reason(error: Exception) -> str:
    """Return the line of an error that says what is wrong: the first of Java's, if it has one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    java = [line for line in lines if re.match(r": [\w.$]+(Exception|Error)\b", line)]
    return (java[0][2:] if java else lines[0])[:300] if lines else type(error).__name__
