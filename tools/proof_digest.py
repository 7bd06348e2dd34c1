"""What a proof is of: a digest of each part that decides a verdict, whatever the commit."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from local_extensions.versions import SPARK

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = Path("packages", "ytstream", "src")
LOCK = Path("templates", "locks", f"spark-{SPARK}.txt")
TEMPLATES = Path("templates")
SUMMARY = Path("docs", "proof", "summary.json")
SAMPLE = Path("docs", "proof", "sample.jsonl")
"""Lines of the results that a clone has."""
BUILD = Path("build", "proof")
RESULTS = "results.jsonl"
"""The file of all results: an asset of the release."""
MOST_MISSED = 0.01
"""The share of cases whose fault may miss its point: they show nothing."""
_FAULTS, _SUPPORT, _TOOLS = (
    Path("tests", "faults"),
    Path("tests", "support"),
    Path("packages", "ytstream-tools", "src", "ytstream_tools"),
)
PARTS: Mapping[str, tuple[Path, ...]] = {
    "runtime": (RUNTIME,),
    "minicluster": (Path("packages", "minicluster", "src"),),
    "demo": (_TOOLS / "demo", _TOOLS / "testing" / "job_stream.py"),
    "harness": (
        *(_FAULTS / f"{name}.py" for name in ("after_requests", "protocol", "variants")),
        *(
            _FAULTS / "sweep" / f"{name}.py"
            for name in (
                "cases", "driver", "history", "injection", "jobs", "judging", "lab", "oracle",
                "play", "playing", "points", "process", "ranges", "recording",
                "repeats", "spyt_control", "worker",
            )
        ),
        _FAULTS / "sweep" / "points.json",
        *(
            _SUPPORT / f"{name}.py"
            for name in (
                "examples", "helpers", "job_thread", "remounts", "server_errors",
                "simulated_driver", "spyt_example", "state_stores", "verdict", "waiting",
            )
        ),
        _SUPPORT / "in_state",
        _SUPPORT / "with_deletes",
    ),
    "packages": (LOCK,),
}  # fmt: skip
"""What every case uses. A case also uses the template of its processing: see parts_of()."""
_KINDS = (".py", ".java", ".toml", ".proto")
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
"""A comment of Java, or a text, which may have two slashes."""


def runtime(root: Path = ROOT) -> str:
    """Return the digest of the runtime."""
    return digests(("runtime",), root)["runtime"]


def parts_of(processing: str) -> tuple[str, ...]:
    """Return the names of the parts that decide what comes of a case of that processing."""
    return (*PARTS, f"template {processing}")


def digests(parts: Iterable[str], root: Path = ROOT) -> dict[str, str]:
    """Return the digest of each of these parts."""
    return {part: _short(_content(part, root)) for part in parts}


def together(found: Mapping[str, str]) -> str:
    """Return one digest of several."""
    return _short("".join(f"{name} {found[name]}\n" for name in sorted(found)).encode())


def _content(part: str, root: Path) -> bytes:
    folders = PARTS.get(part) or (
        TEMPLATES / "shared",
        TEMPLATES / part.removeprefix("template "),
    )
    return b"".join(
        f"{path.relative_to(root)}\0{hashlib.sha256(_meaning(path)).hexdigest()}\n".encode()
        for folder in folders
        for path in sorted(_files(root / folder))
    )


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or those below a folder."""
    if path.is_file():
        yield path
    yield from (one for one in path.rglob("*") if one.suffix in _KINDS)


def _meaning(path: Path) -> bytes:
    """Return what of a file decides: comments, documentation and layout do not."""
    data = path.read_bytes()
    if path.suffix == ".java":
        return " ".join(_COMMENT.sub(r"\1", data.decode()).split()).encode()
    if path.suffix != ".py":
        return data
    tree = ast.parse(data)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_documentation(one)]  # type: ignore[attr-defined]
    return ast.dump(tree).encode()


def _is_documentation(node: ast.AST) -> bool:
    """Whether it is a text that stands alone: nothing is done with it."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def problems(root: Path = ROOT) -> Iterator[str]:
    """Yield why the summary does not prove what is in ``root``."""
    path = root / SUMMARY
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = found.get("parts", {})
    now = digests({**PARTS, **known}, root)
    others = [part for part, digest in now.items() if known.get(part) != digest]
    if others:
        yield f"{SUMMARY} is of another {', '.join(others)}: run make proof, and commit docs/proof"
        return
    if found["left"]:
        yield f"{found['left']} cases of the proof have no result: run make proof"
    if found["not_held"]:
        yield f"{len(found['not_held'])} cases of the proof failed: see docs/proof.md"
    missed, most = len(found["missed"]), MOST_MISSED * found["cases"]
    if missed > most:
        yield f"{missed} cases of the proof were missed, more than {MOST_MISSED:.0%}: see its page"
    asset = root / BUILD / RESULTS
    if not asset.exists():
        yield f"{asset.relative_to(root)} is missing: the release has it as an asset"
    elif checksum(asset) != found["sha256"]:
        yield f"{asset.relative_to(root)} has another checksum than {SUMMARY} says"
