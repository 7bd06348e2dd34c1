"""Compiles the Java of ``jvm/`` where it runs, with the compiler that Spark carries (Janino).

The classes go into a jar: into the driver's class loader, and to the executors as `--jars` would.
Nothing must be installed, and the sources fit the Spark and the SPYT that are there. Where they
do not, the job runs on SPYT's own classes: ``unavailable`` says why.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from .java import Java, jvm_of
from .pyspark_internals import aggregated

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


SOURCE = "ytstream.Queue"
"""What ``readStream.format()`` takes."""
OUTPUT, ADVANCE, PACE = "ytstream.Output", "ytstream.Advance", "ytstream.Pace"
"""The other classes that Python calls."""
STATE_SCHEMA = "ytstream.StateSchema"
REPLAY = "ytstream.Replay"
BACKLOG_CLOCK = "ytstream.BacklogClock"
PIECES = "ytstream.Pieces"
LOOKUP, MOMENTS = "ytstream.Lookup", "ytstream.Moments"
_LINES, _INSERT = "ytstream.Lines", "ytstream.Insert"
_PULL = "ytstream.Pull"
_COMPILER = "org.codehaus.janino.Compiler"
_NO_RESOURCES = "org.codehaus.commons.compiler.util.resource.ResourceFinder.EMPTY_RESOURCE_FINDER"
_MADE: WeakKeyDictionary[Any, tuple[TemporaryDirectory[str] | None, str]] = WeakKeyDictionary()
"""By JVM: the folder with the jar, which executors fetch at any time; None where it cannot be made.
"""
_GIVEN: set[str] = set()
"""The applications whose executors were given the jar."""


def unavailable(spark: SparkSession) -> str:
    """Return why this session cannot use the classes; empty if it can: then it has them.

    The first call of a JVM compiles, in about a second.
    """
    jvm = jvm_of(spark)
    if jvm not in _MADE:
        _MADE[jvm] = _made(Java(jvm), spark.sparkContext._gateway)
    folder, problem = _MADE[jvm]
    application = spark.sparkContext.applicationId
    if folder is not None and application not in _GIVEN:
        spark.sparkContext._jsc.addJar(str(_jar(folder.name)))
        _GIVEN.add(application)
    return problem


def is_loaded(java: Java) -> bool:
    """Return whether the JVM has the classes; compiles nothing."""
    return _MADE.get(java.jvm, (None, ""))[0] is not None


def advance(java: Java, transaction: Any, consumer: str, queue: str, to: Mapping[int, int]) -> None:
    """Move a consumer in several partitions of a queue at once, in a JVM that has the classes."""
    rows = " ".join(f"{partition}:{row}" for partition, row in to.items())
    name = str(transaction.getId().toString())
    java[f"{ADVANCE}.all"](transaction.getClient(), name, consumer, queue, rows)


def insert(
    java: Java, transaction: Any, path: str, schema: Any, rows: Sequence[Sequence[Any]]
) -> None:
    """Write rows in one request: values in the order of the table's columns."""
    java[f"{_INSERT}.json"](transaction, path, schema, json.dumps(rows))


def lines(java: Java, texts: Column, of_a_task: int, of_all: int) -> Column:
    """Return what observes the texts of a column as lines; none of them if they are longer."""
    return aggregated(texts, _LINES, java, of_a_task, of_all, 0, 0)


def lines_observed(java: Java, key: str) -> str | None:
    """Return lines by what was observed of them; None where they are not there any more."""
    found: str | None = java[f"{_LINES}.take"](key)
    return found


def _made(java: Java, gateway: Any) -> tuple[TemporaryDirectory[str] | None, str]:
    """Return the folder with the jar, now loaded; or None and why there is no jar."""
    folder = TemporaryDirectory(prefix="ytstream-connector-")
    try:
        _compile(java, gateway, Path(folder.name))
        loader = java["java.lang.Thread.currentThread"]().getContextClassLoader()
        loader.addURL(java["java.io.File"](str(_jar(folder.name))).toURI().toURL())
        for name in (OUTPUT, _PULL):  # the second looks for what it calls by reflection
            java["java.lang.Class.forName"](name, True, loader)
    except (Py4JError, TypeError, OSError) as error:
        folder.cleanup()
        return None, _reason(error)
    return folder, ""


def _compile(java: Java, gateway: Any, folder: Path) -> None:
    sources = _sources()
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
    with zipfile.ZipFile(_jar(str(folder)), "w") as jar:
        for path in sorted(classes.rglob("*.class")):
            jar.write(path, path.relative_to(classes))


def _sources() -> list[tuple[str, str]]:
    """Return name and text of each source; in the archive of a cluster it is not a file."""
    return sorted(
        (source.name, source.read_text("utf-8"))
        for source in files(__package__).joinpath("jvm").iterdir()
        if source.name.endswith(".java")
    )


def _jar(folder: str) -> Path:
    return Path(folder) / "ytstream-connector.jar"


def _reason(error: Exception) -> str:
    """Return the line of an error that says what is wrong: the first of Java's, if it has one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    java = [line for line in lines if re.match(r": [\w.$]+(Exception|Error)\b", line)]
    return (java[0][2:] if java else lines[0])[:300] if lines else type(error).__name__
