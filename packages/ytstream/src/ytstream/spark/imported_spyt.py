"""SPYT: the one place that imports it, in any process.

Spark 4.2 takes a process whose ``__main__`` has neither ``__file__`` nor ``__spec__`` for a doctest
and ends it with code 0 if packages of Spark Connect are missing (pyspark/sql/connect/utils.py,
check_dependencies, SPARK-55667). That is any ``python -c``, a program on stdin, a worker of pytest,
a package whose ``__init__.py`` imports this under ``python -m``. SPYT imports that module to see
whether Connect is there (spyt/dependency_utils.py). So ``__main__`` has a file meanwhile: then
Spark raises ImportError, which SPYT expects. SPYT's own spyt-env does the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _no_doctest() -> Iterator[None]:
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = __file__
    try:
        yield
    finally:
        del main.__file__


# Before any import of pyspark, whose types and readers it extends (spyt/__init__.py).
with _no_doctest():
    import spyt
    from spyt import types

__all__ = ["spyt", "types"]
