"""`python -m tests.faults.model`: search the protocol and its mutants, and print what was found."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from .options import CASES, CONNECTORS, FAULTS, MUTANTS, Model
from .search import Result, search
from .state import NOBODY, State, Step

_WIDE = "{:>2}  {:9} {:45} {:48} {:24} {}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    bounds = Model(
        rows=options.rows,
        most_rows=options.most_rows,
        drivers=options.drivers,
        starts=options.starts,
        faults=options.faults,
    )
    failures = 0
    print(
        f"{bounds.drivers} drivers, {bounds.rows} rows, {bounds.starts} starts, "
        f"{bounds.faults} faults; every interleaving\n"
    )
    print(f"{'':34} {'states':>9} {'seconds':>8}  found")
    if not options.mutant:
        for (guarantee, job), connector in product(CASES, options.connector):
            model = replace(
                bounds,
                guarantee=guarantee,
                job=job,
                connector=connector,
                kinds=tuple(options.kinds),
            )
            result = search(model)
            failures += bool(result.wrong)
            print(_line(f"{guarantee}, {job}, {connector}", result), flush=True)
            print(told(result), end="")
    for name in options.mutant or MUTANTS:
        result = search(MUTANTS[name].model(name, bounds))
        failures += not result.wrong
        print(f"\n{_line(name, result)}\n{MUTANTS[name].text}\n{told(result)}", end="", flush=True)
    return int(failures > 0)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.faults.model", description=__doc__)
    for name in ("rows", "most_rows", "drivers", "starts", "faults"):
        default = getattr(Model(), name)
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    parser.add_argument("--kinds", nargs="+", choices=FAULTS, default=list(Model().kinds))
    parser.add_argument("--connector", nargs="+", choices=CONNECTORS, default=[*CONNECTORS])
    parser.add_argument("--mutant", nargs="+", choices=MUTANTS, help="search these alone")
    return parser.parse_args(arguments)


def _line(name: str, result: Result) -> str:
    found = f"{result.wrong}, in {len(result.trace)} steps" if result.wrong else "nothing"
    return f"{name:34} {result.states:>9,} {result.seconds:>8.1f}  {found}"


def told(result: Result) -> str:
    """Return the trace, a line for each step, with head, consumer and outputs after it."""
    if not result.trace:
        return ""
    lines = [_WIDE.format("", "", "", "", "head (epoch folder batch row)", "consumer  outputs")]
    for number, (step, state) in enumerate(result.trace, 1):
        done = ", ".join(step.names)
        lines.append(_WIDE.format(number, _who(step), done, step.note, *_seen(state)))
    return "\n".join(line.rstrip() for line in (*lines, f"    => {result.wrong}", ""))


def _who(step: Step) -> str:
    return "cluster" if step.driver == NOBODY else f"driver {step.driver + 1}"


def _seen(state: State) -> tuple[str, str]:
    head = state.head
    outputs = " ".join(map(str, state.out))
    return f"{head.epoch} {head.folder} {head.batch} {head.end}", f"{state.consumer}  {outputs}"


if __name__ == "__main__":
    raise SystemExit(main())
