"""`complete-until`: how far the outputs are complete."""

import argparse
import sys

from ytstream.commands.command import Command, RequiredTables
from ytstream.job import JobContext
from ytstream.sealing import completeness


def _run(context: JobContext, _: argparse.Namespace) -> None:
    found = completeness.read(context)
    print(f"{found.name}={found.text}")
    for name in context.settings.outputs.keys() - found.outputs.keys():
        said = "not so, a table of it waits for its publication"
        if name in context.job.archives:
            said = f"see @{found.name} of its folder, which is the end of a period"
        print(f"{name}: {said}", file=sys.stderr)


COMMAND = Command(
    name="complete-until",
    help="Print a time before which every row is in the outputs, or the watermark of the state.",
    run=_run,
    tables=RequiredTables.MOUNTED,
)
