"""Everything that needs Spark: session, sources, the query, and its supervisor."""

# Before any import of pyspark, whose types and readers it extends (SPYT, spyt/__init__.py).
import spyt  # noqa: F401
