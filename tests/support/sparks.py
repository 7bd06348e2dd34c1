"""The Spark versions as a test's parameter: each but the default has its marker."""

from __future__ import annotations

import pytest

from local_extensions.versions import SPARK, SPARK_VERSIONS

OLDEST = SPARK_VERSIONS[-1]
OTHERS = [
    pytest.param(name, marks=pytest.mark.other_spark) for name in SPARK_VERSIONS if name != SPARK
]
SPARKS = [SPARK, *OTHERS]
