"""What follows from SPARKS of local_extensions/versions.py, in files that cannot read it.

`python -m tools.sparks` writes it, and `make locks` calls it.
"""

from __future__ import annotations

import re
from pathlib import Path

from local_extensions import versions
from local_extensions.versions import SPARK_VERSIONS, SPARKS, pin

ROOT = Path(__file__).resolve().parent.parent


def _range() -> str:
    """Return which versions of pyspark the packages take: any patch of the newest."""
    major, minor = map(int, versions.SPARK.split("."))
    return f"pyspark>={pin('pyspark', SPARK_VERSIONS[-1])},<{major}.{minor + 1}"


def _prompts() -> str:
    lines = (f'      "{one.name}": "{one.name}: Scala {one.scala}. {one.says}"' for one in SPARKS)
    return ",\n".join(lines) + "\n"


_CODE = ", ".join(f"`{name}`" for name in SPARK_VERSIONS)
_TEXT = " and ".join([", ".join(SPARK_VERSIONS[:-1]), SPARK_VERSIONS[-1]])
_PINS = ", ".join(pin("pyspark", name) for name in SPARK_VERSIONS)
_QUOTED = ", ".join(f'"{name}"' for name in SPARK_VERSIONS)
PLACES = (
    ("cookiecutter.json", r'"spark_version": \[.*\]', f'"spark_version": [{_QUOTED}]'),
    ("cookiecutter.json", r'(      "[\d.]+": "[\d.]+: Scala .*\n)+', _prompts()),
    ("README.md", r"\| `spark_version` \| .* \| (?=\|)", f"| `spark_version` | {_CODE} | "),
    ("docs/support.md", r"\| Spark \| .*", f"| Spark | {', '.join(SPARK_VERSIONS)} | {_PINS} |"),
    ("docs/faq.md", r"Spark [\d., and]+ with (?=SPYT)", f"Spark {_TEXT} with "),
    (
        "packages/minicluster/README.md",
        r"`spark-submit`, Spark [\d., and]+ (?=\|)",
        f"`spark-submit`, Spark {_TEXT} ",
    ),
    (
        "docs/upgrading.md",
        r"""'\{"spark_version": "[\d.]+"\}'""",
        f"""'{{"spark_version": "{versions.SPARK}"}}'""",
    ),
    (
        "packages/ytstream/src/ytstream/settings/job_rules.toml",
        r"spark_versions = \[.*\]",
        f"spark_versions = [{_QUOTED}]",
    ),
    ("packages/ytstream/pyproject.toml", r"pyspark>=[\d.]+,<[\d.]+", _range()),
    ("packages/minicluster/pyproject.toml", r"pyspark>=[\d.]+,<[\d.]+", _range()),
)
"""File, a pattern that is in it once, and the text in its place."""


def written(folder: Path = ROOT) -> list[str]:
    """Write what follows; return the files that had something else.

    Raises ValueError for a file without the place, or with two.
    """
    changed = []
    for name, pattern, made in PLACES:
        before = (folder / name).read_text(encoding="utf-8")
        after, count = re.subn(pattern, made.replace("\\", r"\\"), before)
        if count != 1:
            raise ValueError(f"{name} has {pattern} {count} times")
        if after != before:
            (folder / name).write_text(after, encoding="utf-8")
            changed.append(name)
    return changed


if __name__ == "__main__":
    print(*written(), sep="\n")
