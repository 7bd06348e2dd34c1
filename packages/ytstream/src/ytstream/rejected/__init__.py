"""The rows of a micro-batch that REJECT or the watermark keeps out of the results."""

# SPYT extends the types and readers of pyspark, so it is imported first.
from .. import spark as spark
