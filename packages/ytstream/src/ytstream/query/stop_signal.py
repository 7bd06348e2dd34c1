"""Whether this process has to end: the one answer for all who ask."""

import threading

from ..ledger.ledger_rows import Head
from ..log import say
from ..recovery.epoch import Epoch


class StopSignal(threading.Event):
    """Set by a signal, and by `stop`: whoever reads the ledger's head hands it over here."""

    def hear(self, head: Head, epoch: Epoch) -> None:
        """Set it if the ledger asks the process of ``epoch`` to stop."""
        if 0 < epoch.number == head.stopped and not self.is_set():
            say("`stop` was called: finishing the micro-batch, then stopping")
            self.set()
