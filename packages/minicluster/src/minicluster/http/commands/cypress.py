"""Commands on Cypress nodes, attributes and locks."""

from __future__ import annotations

from typing import Any

from ...control.parameters import AT_ONCE, NO_QUOTA, VIRTUAL, Rule, only, read
from ...core import ids
from ...cypress import system
from ...tables.concatenate import concatenate as append_all
from ..registry import NULL, STRUCTURED, Invocation, command

_CLONE: dict[str, Rule] = {
    **read(
        "source_path destination_path recursive force preserve_account preserve_owner "
        "preserve_acl preserve_creation_time preserve_modification_time "
        "preserve_expiration_time preserve_expiration_timeout"
    ),
    "pessimistic_quota_check": NO_QUOTA,
    "enable_cross_cell_copying": NO_QUOTA,
}


def answer(call: Invocation, name: str, value: Any) -> Any:
    """Return a map, as API v4 does, or the value alone if the client asks for that."""
    return value if call.flag("return_only_value") else {name: value}


def node_id(identifier: str) -> dict[str, Any]:
    return {"node_id": identifier, "cell_tag": ids.CELL_TAG}


@command(
    "get",
    parameters={**read("path attributes transaction_id return_only_value"), "max_size": VIRTUAL},
    output=STRUCTURED,
)
def get(call: Invocation) -> Any:
    value = call.cluster.cypress.get(call.path(), tx=call.tx, attributes=call.get("attributes"))
    return answer(call, "value", value)


@command("exists", parameters=read("path transaction_id return_only_value"), output=STRUCTURED)
def exists(call: Invocation) -> Any:
    found = call.cluster.cypress.exists(call.path(), tx=call.tx)
    return answer(call, "value", found)


@command(
    "list",
    parameters=read("path attributes max_size transaction_id return_only_value"),
    output=STRUCTURED,
)
def list_(call: Invocation) -> Any:
    names = call.cluster.cypress.list(
        call.path(),
        tx=call.tx,
        attributes=call.get("attributes"),
        max_size=call.integer("max_size"),
    )
    return answer(call, "value", names)


@command(
    "set", parameters=read("path recursive force transaction_id"), input=STRUCTURED, volatile=True
)
def set_(call: Invocation) -> None:
    call.cluster.cypress.set(
        call.path(), call.input, tx=call.tx, **call.choose("recursive", "force")
    )


@command(
    "multiset_attributes",
    parameters={**read("path transaction_id"), "force": only(False)},
    input=STRUCTURED,
    volatile=True,
)
def multiset_attributes(call: Invocation) -> None:
    call.cluster.cypress.multiset_attributes(call.path(), call.input, tx=call.tx)


@command("remove", parameters=read("path recursive force transaction_id"), volatile=True)
def remove(call: Invocation) -> None:
    call.cluster.cypress.remove(
        call.path(), tx=call.tx, recursive=call.flag("recursive", True), force=call.flag("force")
    )


@command(
    "create",
    parameters={
        **read(
            "type path attributes ignore_type_mismatch recursive ignore_existing "
            "lock_existing force transaction_id"
        ),
        "sync": AT_ONCE,
    },
    output=STRUCTURED,
    volatile=True,
)
def create(call: Invocation) -> Any:
    type = call.string("type")
    attributes = call.mapping("attributes")
    if "path" not in call.parameters:
        made = system.create_object(
            call.cluster.cypress,
            call.cluster.kinds,
            type,
            attributes,
            ignore_existing=call.flag("ignore_existing"),
        )
        return {"object_id": made}
    made = call.cluster.cypress.create(
        type,
        call.path(),
        tx=call.tx,
        attributes=attributes,
        **call.choose(
            "recursive", "ignore_existing", "force", "lock_existing", "ignore_type_mismatch"
        ),
    )
    return node_id(made)


@command(
    "link",
    parameters=read(
        "target_path link_path attributes recursive ignore_existing lock_existing "
        "force transaction_id"
    ),
    output=STRUCTURED,
    volatile=True,
)
def link(call: Invocation) -> Any:
    made = call.cluster.cypress.link(
        call.path("target_path"),
        call.path("link_path"),
        tx=call.tx,
        attributes=call.mapping("attributes"),
        **call.choose("recursive", "ignore_existing", "force", "lock_existing"),
    )
    return node_id(made)


_COPY_FLAGS = (
    "recursive",
    "force",
    "preserve_account",
    "preserve_owner",
    "preserve_acl",
    "preserve_creation_time",
    "preserve_modification_time",
    "preserve_expiration_time",
    "preserve_expiration_timeout",
)


@command(
    "copy",
    parameters={**_CLONE, **read("ignore_existing lock_existing transaction_id")},
    output=STRUCTURED,
    volatile=True,
)
def copy(call: Invocation) -> Any:
    source, destination = call.path("source_path"), call.path("destination_path")
    flags = call.choose("ignore_existing", "lock_existing", *_COPY_FLAGS)
    return node_id(call.cluster.cypress.copy(source, destination, tx=call.tx, **flags))


@command("move", parameters={**_CLONE, **read("transaction_id")}, output=STRUCTURED, volatile=True)
def move(call: Invocation) -> Any:
    source, destination = call.path("source_path"), call.path("destination_path")
    # A move keeps the time of creation unless it is told not to (client/api/cypress_client.h).
    flags = {"preserve_creation_time": True, **call.choose(*_COPY_FLAGS)}
    return node_id(call.cluster.cypress.move(source, destination, tx=call.tx, **flags))


@command(
    "concatenate",
    parameters={
        **read("source_paths destination_path transaction_id"),
        "uniqualize_chunks": only(False),
    },
    volatile=True,
)
def concatenate(call: Invocation) -> None:
    sources, destination = call.required_strings("source_paths"), call.rich("destination_path")
    append_all(call.cluster.cypress, sources, destination, tx=call.tx)


@command(
    "lock",
    parameters=read("path mode waitable child_key attribute_key transaction_id"),
    output=STRUCTURED,
    volatile=True,
)
def lock(call: Invocation) -> Any:
    return call.cluster.cypress.lock(
        call.path(),
        call.get("mode", "exclusive"),
        tx=call.tx,
        waitable=call.flag("waitable"),
        child_key=call.get("child_key"),
        attribute_key=call.get("attribute_key"),
    )


@command("unlock", parameters=read("path transaction_id"), output=NULL, volatile=True)
def unlock(call: Invocation) -> None:
    call.cluster.cypress.unlock(call.path(), tx=call.tx)
