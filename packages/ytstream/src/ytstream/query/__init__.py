"""The streaming query: its plan, its micro-batches, and the supervisor that runs it."""

# SPYT extends the types and readers of pyspark, so it is imported first.
from .. import spark as spark
