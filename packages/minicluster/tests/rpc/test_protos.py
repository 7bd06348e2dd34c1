"""Where the messages of the RPC protocol come from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from minicluster.rpc import protos

ROOT = Path(protos.__file__).parents[2]


def load_in(home: Path, *, code: str = "", cache: Path | None = None) -> str:
    """Load the messages in a fresh interpreter; return what it prints about itself."""
    load = "from minicluster.rpc import protos; protos.load(); print(protos.api('TReqGetNode'))"
    script = f"{code}\n{load}"
    environment = {"HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": ""}
    if cache is not None:
        environment["XDG_CACHE_HOME"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


NO_COMPILER = "import sys\nsys.modules['grpc_tools'] = None"


def test_compiled_once_and_then_read_from_the_cache(tmp_path: Path) -> None:
    first = load_in(tmp_path)
    assert "TReqGetNode" in first
    assert "WARNING" not in first
    (cached,) = (tmp_path / ".cache" / "minicluster").iterdir()
    assert cached.suffix == ".protos"
    # Without the compiler only the cache can answer.
    assert load_in(tmp_path, code=NO_COMPILER) == first


def test_the_cache_follows_the_platform_setting(tmp_path: Path) -> None:
    load_in(tmp_path, cache=tmp_path / "elsewhere")
    assert list((tmp_path / "elsewhere" / "minicluster").iterdir())


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / ".cache").write_text("a file where a folder should be")
    assert "TReqGetNode" in load_in(tmp_path)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (NO_COMPILER, "pip install grpcio-tools"),
        ("import sys\nsys.path = [p for p in sys.path if 'site-packages' not in p]", "protobuf"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, code: str, remedy: str) -> None:
    assert remedy in load_in(tmp_path, code=code)


def test_api_methods_are_known_by_their_messages() -> None:
    assert protos.is_api_method("StartOperation")
    assert not protos.is_api_method("MakeCoffee")
