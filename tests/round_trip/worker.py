"""Every type through one kind of processing; run inside a generated project: ``worker.py KIND``.

Prints one line of JSON: {column: [[sent, found], ...]} of all values that came out otherwise.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path.cwd()
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests"), str(Path(__file__).parents[2])]

# A package named "tests" lies on both sides: the template's has to be found first.
columns: Any = import_module("tests.round_trip.columns")
user_tables: Any = import_module("tests.round_trip.tables")
conftest: Any = import_module("conftest")
sys.modules[f"{conftest.PACKAGE}.tables"] = user_tables

stream: Any = import_module("stream")
testing: Any = import_module("minicluster.testing")
drained: Any = import_module("demo.scenario").drained


def module(name: str) -> Any:
    """A module of the job."""
    return import_module(f"{conftest.PACKAGE}.{name}")


def passed(events: Any) -> Any:
    """The columns as they come."""
    names = [name for name, _, _ in columns.COLUMNS]
    return events.select(*module("guarantee").KEY_COLUMNS, "id", *names)


#: SPYT's own types can be grouped by; Spark 3.5 cannot keep them as an aggregate's value
#: (SpecificInternalRow gives them a MutableAny, the generated code wants a MutableInt).
GROUPED = {*("c_uint64", "c_datetime", "c_date32", "c_datetime64", "c_timestamp64", "c_interval64")}


def windowed(events: Any) -> Any:
    """Each row is the only one of its group, so its values are the group's first ones."""
    from pyspark.sql import functions as F

    names = [name for name, _, _ in columns.COLUMNS]
    window = F.window("at", "1 second")
    groups = events.withWatermark("at", "1 second").groupBy(window, "id", *sorted(GROUPED))
    kept = (F.first(name).alias(name) for name in names if name not in GROUPED)
    return groups.agg(*kept).select("id", *names)


def deduplicated(events: Any) -> Any:
    """Every row is there twice."""
    return passed(events.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"]))


def joined(events: Any, reference: Any) -> Any:
    """The reference's values in the place of the queue's, where it can have them."""
    from pyspark.sql import functions as F

    taken = {f"c_{name}": f"r_{name}" for name in columns.READ_BY_THE_DRIVER}
    names = [name for name, _, _ in columns.COLUMNS]
    kept = events.select("id", *(name for name in names if name not in taken))
    return kept.join(F.broadcast(reference), "id", "left").select(
        "id", *(F.col(taken.get(name, name)).alias(name) for name in names)
    )


TRANSFORMS = {"map": passed, "window": windowed, "deduplicate": deduplicated, "join": joined}


def main(kind: str) -> None:
    module("pipeline").transform = TRANSFORMS[kind]
    with testing.start() as cluster:
        settings = module("settings").load(ROOT / "config/local.toml", {"YT_PROXY": cluster.http})
        client = module("cluster").connect(settings)
        module("provision").provision(client, settings)
        if kind == "join":
            client.insert_rows(settings.reference, columns.reference_rows())
        spark = module("session").open_session(settings)
        job = stream.Stream(module, client, settings, spark)
        job.recover()
        rows = columns.rows() * (2 if kind == "deduplicate" else 1)
        # The last two, hours later, bring the windows of the others out.
        later = [{"id": f"later-{number}"} for number in (1, 2)] if kind == "window" else []
        with job.running() as query:
            for batch in (rows, *([row] for row in later)):
                at = columns.START + (7_200_000_000 if batch[0] in later else 0)
                stamped = [{**row, "at": at, "$tablet_index": 0} for row in batch]
                client.insert_rows(settings.queues[0], stamped)
                stream.wait(drained(client, settings), query)
        found = {row["id"]: row for row in client.select_rows(f"* from [{settings.output}]")}
        count = sum(1 for _ in client.select_rows(f"id from [{settings.output}]"))
        spark.stop()
    wrong: dict[str, list[Any]] = {}
    for row in columns.rows():
        for name in row:
            if found.get(row["id"], {}).get(name) != row[name]:
                wrong.setdefault(name, []).append([row[name], found.get(row["id"], {}).get(name)])
    print(json.dumps({"rows": count, "wrong": wrong}, default=str))


if __name__ == "__main__":
    main(sys.argv[1])
