"""The table of all loads, when the tests are over."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what `why` has said of each load, and its figure before and after."""
    lines = [
        line
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, line in report.user_properties
        if name == "load"
    ]
    if lines:
        terminalreporter.write_sep("=", "loads: what `why` said, and the figure after its advice")
        terminalreporter.write_line("| load | processing | said | figure | before | after |")
        terminalreporter.write("\n".join([*lines, ""]))
