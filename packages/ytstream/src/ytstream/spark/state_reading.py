"""Whether a file of a state is as it was written: by the checksums that it has itself."""

import io
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from py4j.protocol import Py4JJavaError
from yt.common import YtError

from ..cluster.client import Client

_METADATA = "metadata"
"""In the zip file of a snapshot (Spark, RocksDBFileManager): which files in SSTs it needs."""


@dataclass
class StateReader:
    """Reads files of a state, each once; ``jvm`` is one with Spark's jars in it."""

    client: Client
    jvm: Any
    found: dict[str, str] = field(default_factory=dict)
    """What was wrong, by file; empty for a sound one."""

    def is_sound(self, path: str) -> bool:
        """Return whether Spark could read the file."""
        if path not in self.found:
            self.found[path] = self._problem(path)
        return not self.found[path]

    @property
    def damaged(self) -> dict[str, str]:
        """What is wrong with the files that are not sound."""
        return {path: problem for path, problem in self.found.items() if problem}

    def _problem(self, path: str) -> str:
        read = {".zip": self._read_snapshot, ".sst": self._read_sst}
        how = next((read[end] for end in read if path.endswith(end)), self._read_compressed)
        try:
            how(path, bytes(self.client.read_file(path).read()))
        except Py4JJavaError as error:
            return str(error.java_exception.toString())
        except YtError as error:
            if error.is_resolve_error():
                return "it is gone"
            raise
        except (ValueError, KeyError, zipfile.BadZipFile, OSError) as error:
            return str(error)
        return ""

    def _read_compressed(self, _: str, data: bytes) -> None:
        """Read changes, or a snapshot of the store in memory: LZ4 has a checksum of each block."""
        inner = self.jvm.java.io.ByteArrayInputStream(data)
        stream = self.jvm.net.jpountz.lz4.LZ4BlockInputStream(inner)
        stream.transferTo(self.jvm.java.io.OutputStream.nullOutputStream())

    def _read_snapshot(self, path: str, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as files:
            if bad := files.testzip():
                raise ValueError(f"{bad} in it is damaged")
            listed = json.loads(files.read(_METADATA).decode().partition("\n")[2])
        folder = f"{path.rpartition('/')[0]}/SSTs"
        for one in listed.get("sstFiles", ()):
            if not self.is_sound(sst := f"{folder}/{one['dfsSstFileName']}"):
                raise ValueError(f"it needs {sst}: {self.found[sst]}")

    def _read_sst(self, path: str, data: bytes) -> None:
        rocksdb = self.jvm.org.rocksdb
        rocksdb.RocksDB.loadLibrary()
        with TemporaryDirectory() as folder:
            file = Path(folder, path.rpartition("/")[2])
            file.write_bytes(data)
            reader = rocksdb.SstFileReader(rocksdb.Options())
            try:
                reader.open(str(file))
                reader.verifyChecksum()
            finally:
                reader.close()
