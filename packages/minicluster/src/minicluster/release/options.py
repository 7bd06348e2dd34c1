"""The options of ``python -m minicluster`` that concern operations."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from . import publish

_OTHERS = ("spark_home", "node_with", "node_without", "node_says")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    group = parser.add_argument_group("operations")
    group.add_argument(
        "--operations",
        action="store_true",
        help="publish the installed Spark and SPYT, and run vanilla operations as local processes",
    )
    group.add_argument(
        "--spark-home",
        type=Path,
        metavar="FOLDER",
        action="append",
        default=[],
        help="publish this Spark, the folder of an installed pyspark, instead; can be repeated",
    )
    for name, which in (("with", "has, too"), ("without", "lacks")):
        group.add_argument(
            f"--node-{name}",
            metavar="PACKAGE",
            action="append",
            default=[],
            help=f"a package that the Python of jobs {which}; can be repeated",
        )
    group.add_argument("--node-says", metavar="X.Y", help="the version that jobs' Python claims")


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the process, with the reason, unless the options fit each other and this machine."""
    given = [f"--{name.replace('_', '-')}" for name in _OTHERS if getattr(options, name)]
    if given and not options.operations:
        parser.error(f"{', '.join(given)}: of use with --operations only")
    if options.operations and (missing := publish.missing()):
        parser.error(
            f"operations need {', '.join(missing)}: install programs with the system's packages, "
            "Python's with pip install 'minicluster[operations]'"
        )
    if options.node_says and not re.fullmatch(r"\d+\.\d+", options.node_says):
        parser.error(f"--node-says {options.node_says}: give a version such as 3.9")
