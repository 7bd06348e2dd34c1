"""Access control lists, for `check_permission` alone.

Requests themselves are not checked: every user is `root`, a superuser. To test a refusal, inject
it as a fault.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import generic, resolve
from .commands import Cypress
from .model import ADMIN, Node
from .subjects import closure

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


def check_permission(
    cypress: Cypress,
    path: str,
    user: str,
    permission: str,
    *,
    tx: str | None = None,
    columns: list[str] | None = None,
) -> dict[str, Any]:
    """Return what `check` finds of a user that exists; for columns, as for their table."""
    if not cypress.exists(f"//sys/users/{user}"):
        raise resolve(f"//sys/users/{user}", f'No such user "{user}"')
    found = check(cypress, path, user, permission, tx=tx)
    if columns is not None:
        found["columns"] = [{"action": found["action"]} for _ in columns]
    return found


def check(
    cypress: Cypress, path: str, user: str, permission: str, *, tx: str | None = None
) -> dict[str, Any]:
    """Return {action} with "allow" or "deny", and which entry of which object decided it.

    A denial anywhere on the way up wins. Where no list says anything, the answer is to deny.
    """
    if permission not in PERMISSIONS:
        raise generic(f'Error parsing permission "{permission}"')
    node: Node | None = cypress.resolve(path, tx=tx)
    groups = closure(cypress, user)
    if user == ADMIN or "superusers" in groups:
        return {"action": "allow"}
    found = {"action": "deny"}
    while node is not None:
        for entry in node.attributes.get("acl") or ():
            if permission not in entry.get("permissions", ()):
                continue
            if groups.isdisjoint(subjects := entry.get("subjects", ())) and user not in subjects:
                continue
            decided = {"action": entry["action"], "object_id": node.id, "object_name": node.path}
            if entry["action"] == "deny":
                return decided
            if found["action"] == "deny":
                found = decided
        if not node.attributes.get("inherit_acl", True):
            break
        node = node.parent
    return found
