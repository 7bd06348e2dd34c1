"""The owner's repository: where main.py, config/ and build/ are."""

from importlib.util import find_spec
from pathlib import Path

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode


def root_of(package: str) -> Path:
    """Return the repository of the job: the folder of ``src/<package>``.

    Raises JobError for a package outside of a repository, such as one in site-packages.
    """
    spec = find_spec(package)
    root = Path(str(spec.origin)).parents[2] if spec and spec.origin else Path()
    if not (root / "main.py").is_file() or not (root / "config").is_dir():
        raise JobError(
            f"the package {package} is not in src/ of a repository with main.py and config/",
            "call this in the repository, where make does",
            code=ErrorCode.NO_REPOSITORY,
        )
    return root
