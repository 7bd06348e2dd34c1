"""Sequences of operations from a seed, and the shortest one that still fails."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tests.faults.sequences.job_site import UNFIXED, Form, Op, Site
from ytstream.settings.job_settings import OWN, SPYT

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
    "moved_by_hand": (1, 20),
    "data_loss": (1, 2),
    "queue_out": (1, 2),
    "queue_in": (2, 1),
    "guarantee_changed": (1, 150),
    "migrate": (1, 50),
    "rewind": (1, 150),
    "recreate": (1, 2),
    "forget": (1, 1),
    "lose": (1, 1),
}
"""How often each operation comes; the numbers beside them are the largest argument."""
CONNECTORS = (SPYT, OWN, None)
"""What the processes of a job run on: SPYT's connector, our own, or the other one each time."""
READING = ("die_in_batch", "lose_reply", "pause_in_batch")
"""Those that need rows to read."""
SHORTEST, LONGEST = 4, 18

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


@dataclass(frozen=True)
class Case:
    """A job, what is done to it, and how it ends."""

    form: Form
    ops: tuple[Op, ...]
    finish: int = 0

    def run(self, without: Collection[str] = UNFIXED) -> str:
        """Play it; return what is wrong, or nothing."""
        site = Site(self.form, without)
        try:
            for op in self.ops:
                site.play(op)
            site.finish(self.finish)
        except Exception as error:
            what = error if isinstance(error, AssertionError) else repr(error)
            return f"{what}\n  after " + "\n        ".join(site.told)
        finally:
            site.close()
        return ""


def sequence(seed: int) -> Case:
    """Return the sequence of a seed; each kind of job comes in turn."""
    source = random.Random(seed)
    form = Form(
        *KINDS[seed % len(KINDS)],
        start_from=source.choice(["earliest", "latest"]),
        on_data_loss=source.choice(["fail", "skip"]),
        queues=source.choice([1, 2, 2]),
        most_rows=source.choice([3, 50]),
        connector=CONNECTORS[seed // len(KINDS) % len(CONNECTORS)],
    )
    ops = [Op("send", source.randrange(8))]
    paused = out = 0
    for _ in range(source.randint(SHORTEST, LONGEST)):
        weights = {name: weight for name, (weight, _) in OPERATIONS.items()}
        if not paused:
            weights["older"] = 0
        if not out:
            weights["queue_in"] = 0
        (name,) = source.choices([*weights], [*weights.values()])
        paused += name.startswith("pause")
        out += {"queue_out": 1, "queue_in": -1}.get(name, 0)
        if name in READING and source.random() < 0.7:
            ops.append(Op("send", source.randrange(8)))
        ops.append(Op(name, source.randrange(OPERATIONS[name][1])))
    return Case(form, tuple(ops), source.randrange(2))


def shrunk(failing: Case) -> Case:
    """Return a shorter sequence that still fails: without operations, with smaller arguments."""
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for shorter in _shorter(failing):
            if shorter.run():
                failing, is_shorter = shorter, True
                break
    return failing


def _shorter(one: Case) -> Iterator[Case]:
    ops = one.ops
    for size in (8, 4, 2, 1):
        for start in range(len(ops) - size + 1):
            yield Case(one.form, (*ops[:start], *ops[start + size :]), one.finish)
    for place, op in enumerate(ops):
        for n in {0, 1, op.n // 2, op.n - 1}:
            if 0 <= n < op.n:
                yield Case(one.form, _with(ops, place, op._replace(n=n)), one.finish)
    if one.form.queues > 1:
        yield Case(one.form._replace(queues=1), ops, one.finish)


def _with(ops: Sequence[Op], place: int, op: Op) -> tuple[Op, ...]:
    return (*ops[:place], op, *ops[place + 1 :])


def described(one: Case) -> str:
    """Return what it breaks, and the sequence as found.py writes it."""
    return f"{one.run()}\n{one}"
