"""Plain text for people: tables, and numbers of things."""

from collections.abc import Sequence

Cell = str | int | float


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return a table: columns padded to their widest cell, numbers to the right."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(len(str(cell)) for cell in column) for column in columns]
    sides = [
        ">" if any(isinstance(cell, int | float) for cell in column[1:]) else "<"
        for column in columns
    ]
    formats = [f"{side}{width}" for side, width in zip(sides, widths, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("  ".join(map(format, map(str, line), formats)).rstrip() for line in lines)


def counted(number: int, what: str) -> str:
    """Return "1 row", "2 rows"; "batch" has "batches"."""
    ending = "es" if what.endswith("ch") else "s"
    return f"{number} {what}{'' if number == 1 else ending}"


def duration(seconds: float) -> str:
    """Return "35 s", "12 min", "3.2 h" or "4.0 days"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
