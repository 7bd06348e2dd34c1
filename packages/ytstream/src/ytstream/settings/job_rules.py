"""What the template and the runtime both know of a job: the contents of job_rules.toml."""

import pkgutil
import tomllib
from collections.abc import Mapping
from typing import Any

# On a cluster this package is in a zip: the loader reads the file there.
_TEXT = pkgutil.get_data(__package__, "job_rules.toml") or b""

RULES: Mapping[str, Any] = tomllib.loads(_TEXT.decode())
