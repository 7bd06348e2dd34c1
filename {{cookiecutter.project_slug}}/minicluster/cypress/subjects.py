"""Users and groups: who is in which group."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import ALREADY_PRESENT_IN_GROUP, YtError, generic, resolve
from .commands import Cypress
from .kinds import Kind, Kinds
from .model import escape

MEMBERS = (
    ("users", "everyone"),
    ("guest", "everyone"),
    ("superusers", "users"),
    ("root", "superusers"),
    ("job", "superusers"),
    ("scheduler", "superusers"),
)
"""(Member, group) of a fresh cluster (server/master/security_server/security_manager.cpp)."""


@dataclass(slots=True)
class Subject:
    """A user or a group; only a group has members. Both are lists of names."""

    member_of: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list)


def register(kinds: Kinds) -> None:
    """Add the kinds of users and groups."""
    groups = {"member_of": lambda node: list(node.payload.member_of)}
    members = {"members": lambda node: list(node.payload.members)}
    kinds.add(Kind("user", 501, create=lambda attributes: Subject(), builtin=groups))
    kinds.add(
        Kind("group", 502, create=lambda attributes: Subject(), builtin={**groups, **members})
    )


def add_member(cypress: Cypress, member: str, group: str) -> None:
    """Add a user or a group to a group. Raises YtError."""
    subject, whole = _subject(cypress, member), _group(cypress, group)
    if member in whole.members:
        raise YtError(
            ALREADY_PRESENT_IN_GROUP, f'Member "{member}" is already present in group "{group}"'
        )
    if subject is whole or member in closure(cypress, group):
        raise generic(f'Adding group "{member}" to group "{group}" would produce a cycle')
    whole.members.append(member)
    subject.member_of.append(group)


def remove_member(cypress: Cypress, member: str, group: str) -> None:
    """Take a user or a group out of a group. Raises YtError."""
    subject, whole = _subject(cypress, member), _group(cypress, group)
    if member not in whole.members:
        raise generic(f'Member "{member}" is not present in group "{group}"')
    whole.members.remove(member)
    subject.member_of.remove(group)


def closure(cypress: Cypress, subject: str) -> set[str]:
    """Return the groups that a user or a group is in, directly or through others."""
    found: set[str] = set()
    waiting = [subject]
    while waiting:
        known = _find(cypress, waiting.pop(), "users", "groups")
        groups = set(known.member_of if known else ()) - found
        found |= groups
        waiting.extend(groups)
    return found


def _subject(cypress: Cypress, name: str) -> Subject:
    found = _find(cypress, name, "users", "groups")
    if found is None:
        raise resolve(f"//sys/users/{name}", f'No such subject "{name}"')
    return found


def _group(cypress: Cypress, name: str) -> Subject:
    found = _find(cypress, name, "groups")
    if found is None:
        raise resolve(f"//sys/groups/{name}", f'No such group "{name}"')
    return found


def _find(cypress: Cypress, name: str, *folders: str) -> Subject | None:
    for folder in folders:
        path = f"//sys/{folder}/{escape(name)}"
        if name and cypress.exists(path):
            payload = cypress.resolve(path).payload
            return payload if isinstance(payload, Subject) else None
    return None
