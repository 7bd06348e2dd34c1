"""Run by the interpreter inside a generated project: ``play.py PACKAGE CASE OUTCOME [FORMER]``.

Plays a case of cases.py on a minicluster with operations, and writes what came of it as JSON.
FORMER is the interpreter of another Spark, whose distribution the cluster has too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.faults.operations import cases, loads
from tests.faults.operations.job_site import NotDoneError, site


def main(package: str, name: str, outcome: Path, former: str | None = None) -> None:
    try:
        with site(package, former) as here:
            found = {**cases.CASES, **loads.CASES}[name](here)
    except NotDoneError as error:
        sys.exit(str(error))
    print(json.dumps(found))
    outcome.write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])
