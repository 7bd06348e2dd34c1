"""A damaged state: what Spark says of files that are gone or changed, and of another schema.

Only what is known to be damage counts. Spark puts the same conditions around every failure of a
state store, so any other one is tried again, as often as the job allows.
"""

import re
from dataclasses import dataclass

from ..connector.java_trace import bottom
from ..errors import JobError
from ..errors.error_codes import ErrorCode

_OTHER_SCHEMA = (
    "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "[STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE", "[STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
    "[STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE", "[STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMP",
    "[STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION", "[STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
    "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH", "[STATE_STORE_STATE_SCHEMA_FILES_THRESHOLD_EXCEEDED",
    "[STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED",
)  # fmt: skip
"""Spark's conditions for a state that another transform() made. No retry and no older version of
the state helps."""
_MALFORMED = (
    "[CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED",
    *(
        f"[CANNOT_LOAD_STATE_STORE.{one}"
        for one in (
            "CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT", "CANNOT_READ_", "INVALID_CHANGE_LOG_",
            "INVALID_CHECKPOINT_LINEAGE", "KEY_ROW_FORMAT", "VALUE_ROW_FORMAT", "UNEXPECTED_FILE",
        )
    ),
    "Error reading delta file", "Error reading snapshot file", "Error reading streaming state file",
)  # fmt: skip
"""Spark's conditions for a file that is gone or malformed. Spark 3.5 has some of them as texts."""
_LOADS = re.compile(
    r"at org\.apache\.spark\.sql\.execution\.streaming\.state\."
    r"(?:RocksDB|HDFSBackedStateStore|StateStoreChangelog|StateSchemaCompatibilityChecker)"
)
"""Frames of Spark 3.5 and 4 that read a state, where the condition is not known."""
_BYTES = re.compile(
    r"Stream is corrupted|Stream ended prematurely|java\.io\.EOFException|"
    r"java\.io\.FileNotFoundException|java\.util\.zip\.|checksum mismatch|Corruption: |"
    r"com\.fasterxml\.jackson\.|\[UNSUPPORTED_DATATYPE|net\.jpountz\.lz4\.LZ4Exception|"
    # An empty zip file has not this file, which is in every snapshot (RocksDBCheckpointMetadata).
    r"NoSuchFileException: .*/workingDir-[^/]*/metadata"
)
"""What the innermost exception says of bytes that are not those that were written: LZ4 of
changelogs and deltas, zip files of snapshots, RocksDB's own checksums, and JSON."""
_FILE = re.compile(r"(?:yt:)?/*(/[^\s:,'\"]+/state/\d+/\d+/[^\s:,'\"]+)")
_STORE = re.compile(r"opId=(\d+), ?partId=(\d+)|operatorId=(\d+), partitionId=(\d+)")
_IN_FOLDER = re.compile(r"/state/(\d+)/(\d+)/")


@dataclass(frozen=True)
class StateDamage:
    """What is damaged, as far as Spark's exception tells."""

    said: str
    file: str = ""
    """The damaged file."""
    partition: tuple[str, str] | None = None
    """The numbers of the operator and of the partition."""
    is_of_schema: bool = False
    """Whether the files are sound, and of another transform()."""

    @property
    def where(self) -> str:
        """The file and the partition, if they are known."""
        of = (
            f"partition {self.partition[1]} of operator {self.partition[0]}"
            if self.partition is not None
            else ""
        )
        return ", ".join(one for one in (self.file, of) if one)

    def error(self, where: str) -> JobError:
        """Return why the job ends; ``where`` begins what is said."""
        begin = f"the job cannot continue: {where}"
        if self.is_of_schema:
            return JobError(
                f"{begin}the state was made by another transform(): {self.said}",
                "restore the previous transform.py; or use `rewind`, which starts with an empty "
                "state; committed rows are kept",
                code=ErrorCode.STATE_DAMAGED,
            )
        at = f" ({self.where})" if self.where else ""
        # Spark names no file whose bytes are wrong.
        names = "" if self.file else "`rewind state --dry-run` names the damaged files; "
        return JobError(
            f"{begin}the state in the checkpoint is damaged{at}: {self.said}",
            f'{names}`rewind state` repairs it if it can, without duplicates: see "A damaged '
            'state" in docs/operations.md; committed rows are kept',
            code=ErrorCode.STATE_DAMAGED,
        )


def found_in(trace: str) -> StateDamage | None:
    """Return the damage that a trace tells of; None for any other failure."""
    cause = bottom(trace)
    line = f"{cause.name}: {cause.message}" if cause.name else cause.message
    is_of_schema = any(part in trace for part in _OTHER_SCHEMA)
    is_file = any(part in trace for part in _MALFORMED)
    if not (is_of_schema or is_file or (_LOADS.search(trace) and _BYTES.search(line))):
        return None
    file = _FILE.search(trace)
    store = _IN_FOLDER.search(file[0]) if file else _STORE.search(line)
    partition = None
    if store:
        operator, number, *_ = (one for one in store.groups() if one is not None)
        partition = operator, number
    return StateDamage(cause.line, f"/{file[1]}" if file else "", partition, is_of_schema)
