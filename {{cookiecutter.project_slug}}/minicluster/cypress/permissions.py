"""Access control lists, for `check_permission` alone.

Requests themselves are not checked: every user is `root`, a superuser. To test a refusal, inject
it as a fault.
"""

from __future__ import annotations

from typing import Any

from ..errors import generic
from .commands import Cypress
from .model import ADMIN, Node

PERMISSIONS = frozenset(
    {
        "read",
        "full_read",
        "write",
        "use",
        "administer",
        "create",
        "remove",
        "mount",
        "manage",
        "register_queue_consumer",
        "register_queue_consumer_vital",
    }
)


def check(
    cypress: Cypress, path: str, user: str, permission: str, *, tx: str | None = None
) -> dict[str, Any]:
    """Return {action} with "allow" or "deny", and which entry of which object decided it.

    A denial anywhere on the way up wins. Where no list says anything, the answer is to allow: a
    real cluster has such an entry at its root (model).
    """
    if permission not in PERMISSIONS:
        raise generic(f'Error parsing permission "{permission}"')
    node: Node | None = cypress.resolve(path, tx=tx)
    if user == ADMIN:
        return {"action": "allow"}
    allowed: dict[str, Any] = {"action": "allow"}
    decided = False
    while node is not None:
        for entry in node.attributes.get("acl") or ():
            subjects = entry.get("subjects", ())
            if permission not in entry.get("permissions", ()):
                continue
            if user not in subjects and "everyone" not in subjects:
                continue
            found = {"action": entry["action"], "object_id": node.id, "object_name": node.path}
            if entry["action"] == "deny":
                return found
            if not decided:
                allowed, decided = found, True
        if not node.attributes.get("inherit_acl", True):
            return allowed if decided else {"action": "deny"}
        node = node.parent
    return allowed
