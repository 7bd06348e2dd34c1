"""What a proof is of: a digest of the runtime and of the locked packages, whatever the commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from local_extensions.versions import SPARK

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = Path("packages", "ytstream", "src")
LOCK = Path("templates", "locks", f"spark-{SPARK}.txt")
SUMMARY = Path("docs", "proof", "summary.json")
BUILD = Path("build", "proof")
JUDGE = 2
"""The rules by which cases are judged. By those of 1, a driver that ended was started again, and
the case held if that one went on."""


def runtime(root: Path = ROOT) -> str:
    """Return the digest of what the cases play: the runtime, Spark, SPYT and the client."""
    digest = hashlib.sha256()
    sources = (path for path in (root / RUNTIME).rglob("*") if path.suffix in (".py", ".java"))
    for path in (*sorted(sources), root / LOCK):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


def results_of(digest: str) -> str:
    """Return the name of the file with the results of a runtime: an asset of its release."""
    return f"results-{digest}.jsonl"


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def problems(root: Path = ROOT) -> Iterator[str]:
    """Yield why the summary does not prove the runtime in ``root``."""
    path = root / SUMMARY
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    digest = runtime(root)
    if found.get("runtime") != digest:
        yield f"{SUMMARY} is not of the runtime {digest}: run make proof, and commit docs/proof"
        return
    if found.get("judge", 1) != JUDGE:
        yield f"{SUMMARY} was judged by former rules: run make proof, and commit docs/proof"
    if found["left"]:
        yield f"{found['left']} cases of the proof have no result: run make proof"
    if found["not_held"]:
        yield f"{len(found['not_held'])} cases of the proof failed: see docs/proof.md"
    asset = root / BUILD / results_of(digest)
    if not asset.exists():
        yield f"{asset.relative_to(root)} is missing: the release has it as an asset"
    elif checksum(asset) != found["sha256"]:
        yield f"{asset.relative_to(root)} has another checksum than {SUMMARY} says"
