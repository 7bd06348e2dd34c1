"""`fleet --watch`: the table, renewed and cut to the terminal."""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from yt.common import YtError

from ytstream.cluster.client import first_line

from ..status import live_view
from . import shown
from .reading import FleetJob


def watch(read: Callable[[], Sequence[FleetJob]], every: float, out: TextIO = sys.stdout) -> None:
    """Show all jobs every so many seconds, until Ctrl-C, also while the cluster is away."""
    live_view.show(_views(read), every, out)


def _views(read: Callable[[], Sequence[FleetJob]]) -> Iterator[list[str]]:
    """Yield the lines of each view, without an end. Raises what the first reading raises."""
    found, note = read(), ""
    while True:
        yield shown.view(found, note, shutil.get_terminal_size(live_view.SIZE))
        try:
            found, note = read(), ""
        except (YtError, OSError) as error:
            note = f"no answer: {first_line(error)}"
