"""``python -m ytstream``: programs that need no job, such as `doctor` of ytstream-doctor."""

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

from .version import __version__


def main(words: Sequence[str]) -> int:
    """Hand the words to the program of the package that has it."""
    for point in entry_points(group="ytstream.programs", name="doctor"):
        return int(point.load()(words))
    print(
        "error: `doctor` is in the package ytstream-doctor, which is not installed here\n"
        f"  -> pip install ytstream-doctor=={__version__}",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
