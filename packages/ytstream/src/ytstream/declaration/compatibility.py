"""Which guarantee goes with which processing, and why not with the others."""

from ..settings.job_rules import RULES

KEYED: str = RULES["impossible"]["at_least_once"]["reasons"]["aggregate"]
"""Why an output with a key of the user's own needs the transaction."""


def problem(guarantee: str, processing: str) -> str | None:
    """Return why this guarantee cannot hold for this processing; None when it can."""
    impossible = RULES["impossible"].get(guarantee, {"reasons": {}})
    reason = impossible["reasons"].get(processing)
    if reason is None:
        return None
    text: str = impossible["message"].format(processing=processing, reason=reason)
    return text
