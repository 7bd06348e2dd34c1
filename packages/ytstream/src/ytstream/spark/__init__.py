"""The Spark session: opened, verified, closed; its source, its errors, its state store."""

# Before any import of pyspark, whose types and readers it extends (SPYT, spyt/__init__.py).
import spyt  # noqa: F401
