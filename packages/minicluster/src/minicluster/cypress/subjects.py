"""Users and groups: who is in which group."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.errors import ALREADY_PRESENT_IN_GROUP, YtError, generic, resolve
from .commands import Cypress
from .kinds import Getter, Kind, Kinds
from .model import Node, escape

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
    """A user or a group: the names of the groups that it is in."""

    member_of: list[str] = field(default_factory=list)


def register(kinds: Kinds) -> None:
    """Add the kinds of users and groups."""
    groups: dict[str, Getter] = {"member_of": _member_of}
    kinds.add(Kind("user", 501, create=lambda attributes: Subject(), builtin=groups))
    members: dict[str, Getter] = {
        "members": lambda node: [subject.name for subject in _members(node)]
    }
    kinds.add(Kind("group", 502, create=lambda attributes: Subject(), builtin=groups | members))


def _folder(subject: Node, name: str) -> dict[str, Node]:
    assert subject.parent is not None
    assert subject.parent.parent is not None
    return subject.parent.parent.children[name].children


def _member_of(subject: Node) -> list[str]:
    present = _folder(subject, "groups")
    return [name for name in subject.payload.member_of if name in present]


def _members(group: Node) -> list[Node]:
    """Return the users and the groups that are in a group."""
    return [
        subject
        for folder in ("users", "groups")
        for subject in _folder(group, folder).values()
        if group.name in subject.payload.member_of
    ]


def register_new(cypress: Cypress, name: str, type: str) -> None:
    """Put a new user into the group of all users; take from a new group who was in an old one."""
    if type == "user":
        add_member(cypress, name, "users")
    if type == "group":
        for subject in _members(cypress.resolve(f"//sys/groups/{escape(name)}")):
            subject.payload.member_of.remove(name)


def add_member(cypress: Cypress, member: str, group: str) -> None:
    """Add a user or a group to a group. Raises YtError."""
    subject = _subject(cypress, member)
    _require_group(cypress, group)
    if group in subject.member_of:
        raise YtError(
            ALREADY_PRESENT_IN_GROUP, f'Member "{member}" is already present in group "{group}"'
        )
    if member == group or member in closure(cypress, group):
        raise generic(f'Adding group "{member}" to group "{group}" would produce a cycle')
    subject.member_of.append(group)


def remove_member(cypress: Cypress, member: str, group: str) -> None:
    """Take a user or a group out of a group. Raises YtError."""
    subject = _subject(cypress, member)
    _require_group(cypress, group)
    if group not in subject.member_of:
        raise generic(f'Member "{member}" is not present in group "{group}"')
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


def _require_group(cypress: Cypress, name: str) -> None:
    if _find(cypress, name, "groups") is None:
        raise resolve(f"//sys/groups/{name}", f'No such group "{name}"')


def _find(cypress: Cypress, name: str, *folders: str) -> Subject | None:
    for folder in folders:
        path = f"//sys/{folder}/{escape(name)}"
        if name and cypress.exists(path):
            payload = cypress.resolve(path).payload
            return payload if isinstance(payload, Subject) else None
    return None
