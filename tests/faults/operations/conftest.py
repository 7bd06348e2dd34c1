"""The figures of all cases as a table, when the tests are over."""

from __future__ import annotations

import pytest

COLUMNS = ("rows_in", "rows_out", "batches", "lost", "repeated", "seconds")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was counted; ``seconds`` is from the fault to the next batch."""
    lines = [
        "".join(f"{figures.get(column, '')!s:>10}" for column in COLUMNS) + f"  {_name(report)}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, figures in report.user_properties
        if name == "figures"
    ]
    if lines:
        terminalreporter.write_sep("=", "operations: rows, counted from the tables")
        terminalreporter.write_line("".join(f"{column:>10}" for column in COLUMNS))
        terminalreporter.write("\n".join([*lines, ""]))


def _name(report: pytest.TestReport) -> str:
    return report.nodeid.rpartition("::")[2]
