"""One Structured Streaming job on YTsaurus: queues -> transform -> output table."""

# Before any import of pyspark, whose types and readers it extends (SPYT, spyt/__init__.py).
import spyt  # noqa: F401
