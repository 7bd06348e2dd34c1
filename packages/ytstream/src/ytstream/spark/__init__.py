"""The Spark session: opened, verified, closed; its source, its errors, its state store."""

# Before any import of pyspark, whose types and readers SPYT extends.
from . import imported_spyt  # noqa: F401
