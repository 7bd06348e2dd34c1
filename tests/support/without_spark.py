"""The light commands, as `make ops` installs them: without Spark."""

from __future__ import annotations

WITHOUT_SPARK = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "spyt", "pandas", "pyarrow"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Without())
from ytstream_tools.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""Runs the command line in an interpreter that has no Spark."""
