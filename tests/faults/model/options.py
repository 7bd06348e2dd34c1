"""What can be asked of the model: the names of the steps, the faults, the mutants, the bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from tests.faults import protocol

ORDER = protocol.ORDER
STEPS = {name: step.function for name, step in protocol.STEPS.items()}
"""The function that does a step. Those of Spark and SPYT are not ours to import."""

FAULTS = {
    "crash": "a driver's process is killed, before any step",
    "lost": "a tablet transaction is applied and its reply is lost",
    "late": "a commit has no reply; the cluster applies it later, if it still can, or never",
    "error": "a request to a folder fails, done or not; so may the purge after a refusal",
    "skip": "SPYT's advance does nothing, and T commits nevertheless",
}

JOBS = {
    "stateful": "the folder is copied; a planned batch runs again over the same rows",
    "stateless": "the folder is copied; a planned batch is removed",
    "keyed": "as stateful; a batch writes the total of all rows over the one before",
    "empty": "no state; every start has an empty folder, which is gone with its query",
    "static": "as empty; a batch's rows are a table that is published once the head is at it",
}

GUARANTEES = {
    "transactional": "outputs, head and consumer are written in SPYT's transaction T",
    "replaying": "outputs first; then one transaction writes the head; SPYT moves the consumer",
}

CONNECTORS = {
    "spyt": "SPYT's source asks for the consumer in each T; without T it moves the consumer again",
    "own": "ours begins where the last T has moved the consumer; without T it never moves it",
}
"""They differ in where the consumer is moved, and in who asks where it is."""

CASES = tuple(pair for pair in product(GUARANTEES, JOBS) if pair != ("replaying", "keyed"))
"""What a user may combine: the runtime refuses a key without the transaction, see MUTANTS."""


@dataclass(frozen=True, slots=True)
class Model:
    """A variant of the protocol, and the bounds of the search."""

    guarantee: str = "transactional"
    job: str = "stateful"
    connector: str = "spyt"
    mutant: str = ""
    kinds: tuple[str, ...] = tuple(FAULTS)
    rows: int = 3
    most_rows: int = 2  # of a batch
    drivers: int = 2
    starts: int = 3
    faults: int = 2

    @property
    def replays(self) -> bool:
        return self.guarantee == "replaying"

    @property
    def is_own(self) -> bool:
        return self.connector == "own"

    @property
    def empties(self) -> bool:
        return self.job in ("empty", "static")

    @property
    def static(self) -> bool:
        return self.job == "static"

    @property
    def stateful(self) -> bool:
        return self.job in ("stateful", "keyed")

    @property
    def keyed(self) -> bool:
        return self.job == "keyed"


class Mutant(NamedTuple):
    """A protocol that leaves one thing out, and the fewest faults that show it."""

    text: str
    faults: int = 0
    guarantee: str = "transactional"
    job: str = "stateful"
    drivers: int = 2

    def model(self, name: str, bounds: Model) -> Model:
        own = self._asdict()
        del own["text"]
        return replace(bounds, mutant=name, **own)


MUTANTS = {
    "keyed_replaying": Mutant(
        "a keyed output without the transaction", guarantee="replaying", job="keyed"
    ),
    "late_total": Mutant(
        "a keyed output without the transaction, and one driver: a task of a batch that has failed "
        "writes its total when a later batch has written its own",
        1,
        "replaying",
        "keyed",
        drivers=1,
    ),
    "no_epoch": Mutant("no epoch is raised before a start"),
    "shared_folder": Mutant("one folder for all epochs"),
    "cached_check": Mutant("the head is read in the first batch of a query and then remembered"),
    "no_check": Mutant("the head is not read in the batch"),
    "head_outside": Mutant("the head is written after T, in a transaction of its own"),
    "begin_unchecked": Mutant("`begin` does not check the epoch"),
    "number_alone": Mutant("an epoch is known as one's own by its number, not by its owner", 2),
    "no_repair": Mutant("the commit log is copied as it is"),
    "planned_again": Mutant("with state, a planned batch is removed and planned again"),
    "planned_behind": Mutant("a planned batch is copied although it ends before the head", 1),
    "consumer_unchecked": Mutant("the consumer is not compared with the head", 1),
    "no_watch": Mutant("an idle query's consumer is not compared with the head", 1),
    "no_put_back": Mutant(
        "an idle query's consumer that an older driver has moved back stays there",
        0,
        "replaying",
        "empty",
    ),
    "checked_late": Mutant("with state, the head is verified after the state was written", 1),
    "start_unchecked": Mutant(
        "a batch's first row is not compared with the head", 1, "replaying", "empty"
    ),
    "published_early": Mutant("a table is published before its batch happened", job="static"),
    "removed_early": Mutant("orphans are removed before the epoch is raised", job="static"),
    "removed_newer": Mutant("the orphans of newer epochs are removed, too", job="static"),
    "nothing_removed": Mutant("a start publishes orphans, too", job="static"),
}
