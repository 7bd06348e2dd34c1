"""Sequences of operations from a seed, and the shortest one that still fails."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tests.sequences.world import Form, Op, World

#: How often each operation comes; the numbers beside them are the largest argument.
OPERATIONS: dict[str, tuple[int, int]] = {
    "send": (6, 8),
    "batch": (8, 2),
    "die_in_batch": (2, 45),
    "lose_reply": (1, 1),
    "pause_in_batch": (3, 45),
    "restart": (3, 2),
    "die_in_start": (2, 60),
    "pause_in_start": (2, 60),
    "older": (5, 2),
    "partition": (1, 2),
    "trim": (1, 40),
    "data_loss": (1, 2),
    "queue_out": (1, 2),
    "queue_in": (2, 1),
    "guarantee_changed": (1, 150),
    "migrate": (1, 50),
    "rewind": (1, 150),
}
SHORTEST, LONGEST = 4, 22

KINDS = (
    ("transactional", "map", False),
    ("transactional", "map", True),
    ("transactional", "window", False),
    ("transactional", "window", True),
    ("transactional", "aggregate", False),
    ("idempotent", "map", False),
    ("idempotent", "map", True),
    ("at_least_once", "map", False),
    ("at_least_once", "map", True),
    ("at_least_once", "window", False),
    ("at_least_once", "window", True),
)
FORMS = tuple(
    Form(*kind, start_from=start_from, on_data_loss=on_data_loss, queues=queues)
    for kind, start_from, on_data_loss, queues in product(
        KINDS, ("earliest", "latest"), ("fail", "skip"), (2, 1)
    )
)


@dataclass(frozen=True)
class Sequence_:
    """A job, what is done to it, and how it ends."""

    form: Form
    ops: tuple[Op, ...]
    finish: int = 0

    def run(self, without: frozenset[str] = frozenset()) -> str:
        """Play it; return what is wrong, or nothing."""
        world = World(self.form, without)
        try:
            for op in self.ops:
                world.play(op)
            world.finish(self.finish)
        except AssertionError as error:
            return f"{error}\n  after " + "\n        ".join(world.told)
        finally:
            world.close()
        return ""


def sequence(seed: int, without: frozenset[str] = frozenset()) -> Sequence_:
    """Return the sequence of a seed; each kind of job comes in turn."""
    source = random.Random(seed)
    form = FORMS[seed % len(FORMS)]
    offered = [name for name in OPERATIONS if name not in without]
    weights = [OPERATIONS[name][0] for name in offered]
    names = source.choices(offered, weights, k=source.randint(SHORTEST, LONGEST))
    ops = tuple(Op(name, source.randrange(OPERATIONS[name][1])) for name in names)
    return Sequence_(form, (Op("send", source.randrange(8)), *ops), source.randrange(2))


def shrunk(failing: Sequence_, without: frozenset[str] = frozenset()) -> Sequence_:
    """Return a shorter sequence that still fails: without operations, with smaller arguments."""
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for shorter in _shorter(failing):
            if shorter.run(without):
                failing, is_shorter = shorter, True
                break
    return failing


def _shorter(one: Sequence_) -> Iterator[Sequence_]:
    ops = one.ops
    for size in (8, 4, 2, 1):
        for start in range(0, len(ops) - size + 1):
            yield Sequence_(one.form, (*ops[:start], *ops[start + size :]), one.finish)
    for place, op in enumerate(ops):
        for n in {0, 1, op.n // 2, op.n - 1}:
            if 0 <= n < op.n:
                yield Sequence_(one.form, _with(ops, place, op._replace(n=n)), one.finish)
    if one.form.queues > 1:
        yield Sequence_(one.form._replace(queues=1), ops, one.finish)


def _with(ops: Sequence[Op], place: int, op: Op) -> tuple[Op, ...]:
    return (*ops[:place], op, *ops[place + 1 :])
