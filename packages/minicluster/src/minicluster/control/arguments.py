"""The one table of arguments: what the journal and fault rules call the fields of a request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Form(Enum):
    """How a field of an RPC message is shown; parameters of HTTP are shown as they came."""

    TEXT = auto()
    TEXTS = auto()
    ID = auto()
    COUNT = auto()
    INTEGER = auto()
    FLAG = auto()


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its name in the journal, in HTTP parameters and in RPC messages."""

    shown: str
    http: str | None
    rpc: str | None
    form: Form = Form.TEXT


def _same(name: str, form: Form) -> Argument:
    return Argument(name, name, name, form)


ARGUMENTS = (
    _same("path", Form.TEXT),
    Argument("path", "link_path", None),
    Argument("paths", None, "paths", Form.TEXTS),
    Argument("source_path", "source_path", "src_path"),
    Argument("source_paths", None, "src_paths", Form.TEXTS),
    Argument("destination_path", "destination_path", "dst_path"),
    Argument("target_path", "target_path", None),
    Argument("queue", "queue_path", "queue_path"),
    Argument("consumer", "consumer_path", "consumer_path"),
    Argument("producer", "producer_path", "producer_path"),
    Argument("transaction", "transaction_id", "transaction_id", Form.ID),
    Argument("id", None, "id", Form.ID),
    Argument("rows", None, "row_modification_types", Form.COUNT),
    Argument("partition", "partition_index", "partition_index", Form.INTEGER),
    _same("offset", Form.INTEGER),
    _same("old_offset", Form.INTEGER),
    _same("new_offset", Form.INTEGER),
    _same("query", Form.TEXT),
    _same("type", Form.INTEGER),
    _same("recursive", Form.FLAG),
    _same("force", Form.FLAG),
    Argument("mode", "mode", None),
    _same("tablet_index", Form.INTEGER),
    _same("trimmed_row_count", Form.INTEGER),
    _same("session_id", Form.TEXT),
    _same("vital", Form.FLAG),
    Argument("operation", "operation_id", "operation_id", Form.ID),
    Argument("alias", "operation_alias", "operation_alias"),
    Argument("operation_type", "operation_type", None),
    Argument("job", "job_id", "job_id", Form.ID),
    _same("cache_path", Form.TEXT),
    _same("md5", Form.TEXT),
)
OF_HTTP = {argument.http: argument.shown for argument in ARGUMENTS if argument.http}
"""Parameter -> its name in the journal."""
OF_RPC = {argument.rpc: (argument.shown, argument.form) for argument in ARGUMENTS if argument.rpc}
"""Field of a request -> its name in the journal, and how it is shown."""
