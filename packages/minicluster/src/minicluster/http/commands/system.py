"""Commands about the cluster itself: features, permissions, accounts."""

from __future__ import annotations

from typing import Any

from ...control.parameters import AT_ONCE, ONE_KIND, each, only, read
from ...cypress import subjects
from ...cypress.permissions import check_permission as decide
from ..registry import STRUCTURED, Invocation, command

VERSION = "25.2.0-minicluster"

_TYPES = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float",
    "double",
    "string",
    "bool",
    "utf8",
    "json",
    "uuid",
    "date",
    "datetime",
    "timestamp",
    "interval",
    "date32",
    "datetime64",
    "timestamp64",
    "interval64",
    "yson",
    "void",
    "null",
]


@command("get_supported_features", output=STRUCTURED)
def get_supported_features(call: Invocation) -> Any:
    return {
        "features": {
            "primitive_types": _TYPES,
            "compression_codecs": ["none", "lz4", "snappy", "zlib_6", "zstd_3", "brotli_3"],
            "erasure_codecs": ["none"],
            "query_memory_limit_in_tablet_nodes": True,
            "operation_statistics_descriptions": {},
            "require_password_in_authentication_commands": True,
        }
    }


@command("get_version", output=STRUCTURED)
def get_version(call: Invocation) -> Any:
    return {"version": VERSION}


@command(
    "check_permission",
    parameters=read("user permission path columns transaction_id"),
    output=STRUCTURED,
)
def check_permission(call: Invocation) -> Any:
    return decide(
        call.cluster.cypress,
        call.path(),
        call.string("user"),
        call.string("permission"),
        tx=call.tx,
        columns=call.strings("columns"),
    )


@command("add_member", parameters=read("member group"), volatile=True)
def add_member(call: Invocation) -> None:
    subjects.add_member(call.cluster.cypress, call.string("member"), call.string("group"))


@command("remove_member", parameters=read("member group"), volatile=True)
def remove_member(call: Invocation) -> None:
    subjects.remove_member(call.cluster.cypress, call.string("member"), call.string("group"))


@command(
    "check_cluster_liveness",
    parameters=each(
        "check_cypress_root check_secondary_master_cells check_tablet_cell_bundle", AT_ONCE
    ),
)
def check_cluster_liveness(call: Invocation) -> None:
    """Answer: the client asks for nothing else."""


@command("get_current_user", output=STRUCTURED)
def get_current_user(call: Invocation) -> Any:
    return {"user": "root"}


@command(
    "discover_proxies",
    parameters={
        **read("role"),
        **each("address_type network_name ignore_balancers", ONE_KIND),
        "type": only("rpc"),
    },
    output=STRUCTURED,
)
def discover_proxies(call: Invocation) -> Any:
    return {"proxies": call.gate.rpc_proxies(call.get("role"))}
