"""The rows of a micro-batch on their way into the output tables."""

# SPYT extends the types and readers of pyspark, so it is imported first.
from .. import spark as spark
