"""YOURS. Hits in a particle detector, whose electronics say NaN and infinity, and mean it."""

import yt.type_info as ti

from ytstream import REJECTED, Column

QUEUE = [
    Column("run", "int32", required=True),
    Column("hit", "uint64", required=True),
    Column("latched", "timestamp", required=True),
    Column("energy", "double"),
    # Four bytes: 0.1 comes back as 0.10000000149.
    Column("charge", "float"),
    Column("samples", ti.List[ti.Double], required=True),
    Column("fit", ti.Struct["chi2" : ti.Double, "slope" : ti.Optional[ti.Double]]),
]

POSITION = [
    Column("queue_id", "utf8", key=True),
    Column("tablet_index", "int64", key=True),
    Column("row_index", "int64", key=True),
]
"""The position in front, as idempotent with several queues needs it."""

OUTPUTS = {
    "output": [
        *POSITION,
        Column("run", "int32", required=True),
        Column("hit", "uint64", required=True),
        Column("latched", "timestamp", required=True),
        Column("energy_gev", "double"),
        Column("net", "double"),
        Column("charge_fc", "float"),
        Column("samples", ti.List[ti.Double], required=True),
        Column("chi2", "double"),
        Column("slope", "double"),
    ],
    "saturated": [
        *POSITION,
        Column("run", "int32", required=True),
        Column("hit", "uint64", required=True),
        Column("energy_gev", "double"),
    ],
    "rejected": REJECTED,
}
