"""The messages of the RPC protocol, compiled from the .proto files of the installed SPYT wheel.

No generated code is kept: the jars of the wheel carry the very files that the Java client inside
them was built from. They are compiled once into a descriptor set, which stays in the user's cache
directory under the hash of its sources.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ..core.errors import ProtosUnavailableError

JARS = "tech.ytsaurus-ytsaurus-proto-c*.jar"
"""The `-client` and `-core` jars; `-formats` holds nothing that travels over RPC."""
ROOTS = (
    "yt_proto/yt/client/api/rpc_proxy/proto/api_service.proto",
    "yt_proto/yt/client/api/rpc_proxy/proto/discovery_service.proto",
    "yt_proto/yt/core/bus/proto/bus.proto",
    "yt_proto/yt/core/misc/proto/protobuf_helpers.proto",
    "yt_proto/yt/core/rpc/proto/rpc.proto",
)
API = "NYT.NApi.NRpcProxy.NProto."
RPC = "NYT.NRpc.NProto."


def load() -> None:
    """Read, and the first time compile, the messages. Raises ProtosUnavailableError."""
    _pool()


@cache
def message(name: str) -> Any:
    """Return the class of a message, by its full name. Raises KeyError for an unknown one."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(name))


def api(name: str) -> Any:
    """Return the class of a message of `api_service.proto` or `schema.proto`."""
    return message(API + name)


def is_api_method(name: str) -> bool:
    """Return whether the API of a real cluster has that method, judging by its request message."""
    try:
        api(f"TReq{name}")
    except KeyError:
        return False
    return True


def rpc(name: str) -> Any:
    """Return the class of a message of the core `rpc.proto`."""
    return message(RPC + name)


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    files = descriptor_pb2.FileDescriptorSet.FromString(_descriptor_set())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return pool


def _descriptor_set() -> bytes:
    sources = _sources()
    digest = hashlib.sha256(repr(ROOTS).encode())
    for name, text in sorted(sources.items()):
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minicluster"
    cached = root / f"{digest.hexdigest()[:32]}.protos"
    try:
        return cached.read_bytes()
    except OSError:
        compiled = _compile(sources)
    with suppress(OSError):  # a cache that cannot be written only makes the next start slower
        _write_atomically(cached, compiled)
    return compiled


def _sources() -> dict[str, bytes]:
    spec = find_spec("spyt")
    if spec is None or not spec.origin:
        raise ProtosUnavailableError(
            "The RPC proxy takes its messages from the SPYT wheel: pip install ytsaurus-spyt"
        )
    jars = sorted((Path(spec.origin).parent / "jars").rglob(JARS))
    sources: dict[str, bytes] = {}
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".proto"):
                    sources[name] = archive.read(name)
    if not set(ROOTS) <= set(sources):
        raise ProtosUnavailableError(f"The SPYT wheel at {spec.origin} carries no .proto files")
    return sources


def _compile(sources: dict[str, bytes]) -> bytes:
    try:
        import grpc_tools
        from grpc_tools import protoc
    except ImportError as error:
        raise ProtosUnavailableError(
            "The first start compiles the protocol's messages: pip install grpcio-tools"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without a syntax line protoc assumes this one, and says so once a file.
            path.write_bytes(b'syntax = "proto2";\n' + text)
        compiled = Path(folder, "compiled")
        well_known = Path(grpc_tools.__file__).parent / "_proto"
        status = protoc.main(
            [
                "protoc",
                f"--proto_path={folder}",
                f"--proto_path={well_known}",
                "--include_imports",
                f"--descriptor_set_out={compiled}",
                *ROOTS,
            ]
        )
        if status:
            raise ProtosUnavailableError("protoc failed on the .proto files of the SPYT wheel")
        return compiled.read_bytes()


def _write_atomically(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
