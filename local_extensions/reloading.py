"""Two commits of the template in one process: `cruft update` renders the former and the new one."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path


def forget_the_extension() -> None:
    """Under cruft, let the next render import the extension from its files again.

    cruft checks both commits out into one folder, one after the other. Python would give the new
    commit the modules of the former: from ``sys.modules``, or from bytecode, which it takes for
    current when source files have the same size and the same second. Elsewhere each process renders
    one commit.
    """
    if "cruft" not in sys.modules:
        return
    package = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    shutil.rmtree(Path(__file__).parent / "__pycache__", ignore_errors=True)
    importlib.invalidate_caches()
