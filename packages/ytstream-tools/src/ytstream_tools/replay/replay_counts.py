"""What happens to rejected rows in a replay, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ytstream.outputs.row_json import INEXACT


@dataclass
class ReplayCounts:
    """What happened to the rejected rows, or would happen."""

    passed: int = 0
    """Rows that left `rejected`; with --remove-dropped those that go into no output, too."""
    written: dict[str, int] = field(default_factory=dict)
    """Output -> its rows."""
    rejected: int = 0
    """Rows that REJECT rejects again, or whose JSON makes no row."""
    inexact: int = 0
    dropped: int = 0
    """Rows that transform() and outputs() put into no output."""
    held: int = 0
    """Rows at whose position an output has a row."""
    accepted: int = 0
    """Rows that a later batch has accepted, and rows that the next batches read."""
    coming: int = 0
    renumbered: int = 0
    """Rows of removed partitions that may have been read again under other positions."""
    unknown: int = 0
    """Rows that may have been read again by batches that the ledger has dropped."""
    outside: int = 0
    """Rows that an archive has no open period for, or had none for."""
    is_removing: bool = False

    @property
    def stayed(self) -> int:
        """How many rows stay in `rejected`."""
        dropped = 0 if self.is_removing else self.dropped
        read_again = self.accepted + self.coming + self.renumbered + self.unknown
        return self.rejected + dropped + self.held + self.outside + read_again

    def reasons(self) -> Iterator[str]:
        """Yield why rows stay."""
        if again := self.rejected - self.inexact:
            yield f"{again} of them since REJECT rejects them again"
        if self.inexact:
            yield f"{self.inexact} of them since JSON cannot hold them: column `row`, {INEXACT}"
        if self.dropped and not self.is_removing:
            yield (
                f"{self.dropped} of them since transform() or outputs() drops them "
                "(--remove-dropped removes them)"
            )
        if self.held:
            yield (
                f"{self.held} of them since an output has a row at their position: they were read "
                "again and accepted, or the queue was recreated"
            )
        if self.outside:
            yield (
                f"{self.outside} of them since an archive has no period for them, and the other "
                "outputs may have them"
            )
        if self.accepted:
            yield (
                f"{self.accepted} of them since a later batch has read their position again and "
                "has not rejected it: they are in the outputs, or the queue was recreated"
            )
        if self.coming:
            yield f"{self.coming} of them since the job reads them again: it was moved back"
        if self.renumbered:
            yield (
                f"{self.renumbered} of them since a reshard has removed their partition, and a "
                "`rewind` came later: the job reads them again under other positions, or has "
                "done so"
            )
        if self.unknown:
            yield (
                f"{self.unknown} of them since a `rewind` went back over them, and the ledger no "
                "longer has the batches that came after it: they may be in the outputs. Compare "
                "them with the outputs, and send those that are missing into a queue of the job"
            )

    def gone(self, verb: str) -> str:
        """Return how many rows left, by what they did: "went", or "would go"."""
        removed = self.dropped if self.is_removing else 0
        said = f"{self.passed - removed} rows {verb} into the outputs"
        if removed:
            said += f", {removed} that go into none {verb} out of `rejected`"
        return said

    def left(self, verb: str, path: str) -> str:
        """Return how many rows stay in the table at ``path``, and why."""
        return ", ".join([f"{self.stayed} {verb} in {path}", *self.reasons()])
