"""The parameters that every HTTP command knows (names: client/driver/*_commands.cpp).

Clients add these to requests of any kind. The rules that a command is registered with override
them. A parameter that is in neither is refused.
"""

from __future__ import annotations

from ..control.parameters import (
    AT_ONCE,
    NO_ACCESS,
    NO_REPLICAS,
    ONE_MASTER,
    Harmless,
    Rule,
    each,
    read,
)

EVERY: dict[str, Rule] = {
    **read("input_format output_format"),
    **read("prerequisite_transaction_ids prerequisite_revisions"),
    **read("mutation_id retry"),
    "transaction_id": Harmless(
        "the client adds it to each request inside a transaction; this command works in none"
    ),
    "ping": Harmless("a command takes no time in which a transaction could expire"),
    "ping_ancestor_transactions": Harmless("only ping_transaction pings"),
    "timeout": AT_ONCE,
    **each(
        "suppress_transaction_coordinator_sync suppress_upstream_sync read_from "
        "disable_per_user_cache expire_after_successful_update_time "
        "expire_after_failed_update_time success_staleness_bound "
        "cache_sticky_group_size",
        ONE_MASTER,
    ),
    "rpc_hedging_delay": NO_REPLICAS,
    **each(
        "suppress_access_tracking suppress_modification_tracking "
        "suppress_expiration_timeout_renewal",
        NO_ACCESS,
    ),
}
