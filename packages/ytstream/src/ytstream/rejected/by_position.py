"""The rejected rows of a micro-batch by their positions, where they are few.

The query observes the positions of the rows that it rejects (``histogram_numeric``: up to its
number of bins each value is a bin of its own, Spark's NumericHistogram). Only these rows are then
selected from their queues, and go the way of the others: SPYT makes rows of Spark's of them, and
the batch's plan gives them their reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..connector.batch_plan import leaves, selected_rdd
from ..connector.plans import Node
from ..connector.tablet_transactions import Tablets
from ..errors import RestartableError
from ..errors.error_codes import ErrorCode
from ..outputs.audit import Ranges, RowRange
from ..spark.source import INNER_POSITION

#: Above this many rejected rows, read the whole batch again instead: each row costs as many
#: comparisons as there are rejected rows (trim()).
MOST_ROWS = 2_048
#: Likewise above this many bytes as JSON: they pass through the driver. See selected(), ``sized``.
MOST_BYTES = 8 * 1024**2
#: Rows that one query names.
_NAMED = 1_000
#: A position as one number, which a double holds: 12 bits queue, 14 tablet, 27 row.
_QUEUES, _TABLETS, _ROWS = 1 << 12, 1 << 14, 1 << 27
#: Types whose values have few bytes, by their names in Spark's and SPYT's JSON.
_SHORT = (
    "byte", "short", "integer", "long", "uint64", "float", "double", "boolean", "date", "timestamp",
)  # fmt: skip
_BIN = re.compile(r"\[([^,\]]+),([^,\]]+)\]")

#: Queue -> partition -> rows.
Positions = Mapping[str, Mapping[int, Sequence[int]]]


def observed(is_rejected: Expression, size: str, queues: Sequence[str]) -> list[Expression]:
    """Return what to observe of rows: the positions of those that are rejected, and their bytes.

    ``size`` is a column, since the expressions come back from the executors, and SPYT's of uint64
    cannot under Spark 3.5 (AggregatingAccumulator, UInt64CastToString).
    """
    tablet, row = (F.col(name) for name in INNER_POSITION.values())
    queue = F.lit(0)
    if len(queues) > 1:
        queue = F.coalesce(*(F.when(F.col("queue_id") == path, n) for n, path in enumerate(queues)))
    number = queue * _TABLETS + tablet
    place = (number * _ROWS + row % _ROWS).cast("double")
    return [
        F.histogram_numeric(F.when(is_rejected, place), F.lit(MOST_ROWS)).alias("places"),
        F.sum(size).alias("bytes"),
    ]


def positions(found: Any, counts: Mapping[str, int], planned: Ranges) -> Positions | None:
    """Return where the rejected rows of a batch are, out of the row of figures that was observed.

    None where they are not few, or not all known: after an attempt at a task that was repeated.
    """
    count, last = sum(counts.values()), max(chain(*planned.values()), default=0)
    if len(planned) > _QUEUES or last >= _TABLETS or not 0 < count <= MOST_ROWS:
        return None
    text, size = found.get(len(counts)).mkString(), found.get(len(counts) + 1)
    bins = [(int(float(place)), float(times)) for place, times in _BIN.findall(text)]
    if size > MOST_BYTES or len(bins) != count or any(times != 1 for _, times in bins):
        return None
    named: dict[str, dict[int, list[int]]] = {queue: {} for queue in planned}
    queues = dict(enumerate(planned))
    for place, _ in bins:
        number, low = divmod(place, _ROWS)
        queue, tablet = queues.get(number // _TABLETS, ""), number % _TABLETS
        rows = planned.get(queue, {}).get(tablet, RowRange(0, 0))
        ahead = (low - rows.first) % _ROWS
        if not ahead < rows.count <= _ROWS:
            return None
        named[queue].setdefault(tablet, []).append(rows.first + ahead)
    return named


def selected(
    rows: DataFrame, node: Node, places: Positions, tablets: Tablets, sized: Collection[str]
) -> dict[int, Any]:
    """Return the rows at ``places`` as the leaves of ``node`` hold them: number of a leaf -> RDD.

    The queues are read by leaves in their order. Of the columns ``sized`` the bytes were observed.
    Raises RestartableError where other columns may hold any number of bytes, where the cluster
    refuses that or has not all of the rows, and where SPYT makes no rows of them.
    """
    found = {}
    read = zip(leaves(node), places.items(), strict=True)
    for number, ((leaf, columns), (queue, named)) in enumerate(read):
        if wide := [n for n, kind in columns.items() if n not in sized and kind not in _SHORT]:
            raise RestartableError(
                f"{queue} has more columns of any size: {', '.join(wide)}",
                code=ErrorCode.OTHER_ROWS,
            )
        rowsets = tablets.rowsets(
            f"[{'], ['.join(columns)}] from [{queue}] where [$tablet_index] = {tablet} "
            f"and [$row_index] in ({', '.join(map(str, keys[start : start + _NAMED]))})"
            for tablet, keys in named.items()
            for start in range(0, len(keys), _NAMED)
        )
        wanted = sum(map(len, named.values()))
        if (has := sum(rowset.getRows().size() for rowset in rowsets)) != wanted:
            raise RestartableError(f"{queue} has {has} of {wanted} rows", code=ErrorCode.OTHER_ROWS)
        try:
            found[number] = selected_rdd(rows, leaf, rowsets, tablets.java)
        except (Py4JJavaError, PySparkException) as error:
            raise RestartableError(
                f"SPYT makes no rows of those of {queue}", code=ErrorCode.OTHER_ROWS
            ) from error
    return found
