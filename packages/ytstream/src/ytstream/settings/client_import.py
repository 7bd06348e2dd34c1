"""Imports ytsaurus-client first, without the shell's settings for it.

yt/wrapper/config.py and yt/logger.py read YT_* and ~/.yt/config when they are imported, and raise
for a value that they cannot take: YT_USE_TOKEN=true, YT_LOG_LEVEL=ZZZ. The clients of this runtime
get all their settings from its configuration (cluster/client.py), so none of these has an effect.
"""

import os

from . import environment

with environment.replaced(
    {**environment.kept(os.environ, environment.CLUSTER), "HOME": os.devnull}
):
    import yt.wrapper  # noqa: F401
