"""Checks the Java of this machine, without starting Spark."""

import os
import re
import subprocess

from ..errors import JobError, open_files
from ..errors.error_codes import ErrorCode

VERSIONS = ("17", "21")
"""What Spark with SPYT runs on."""
INSTALL = "install Java 17 or 21 (`make java` says how on each system) or set JAVA_HOME"


def require_java() -> None:
    """Raise JobError unless there is a Java here that Spark runs on, with enough open files."""
    open_files.verify()
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise JobError(
            f"no Java: {java} cannot be run: {error.strerror}", INSTALL, code=ErrorCode.JAVA
        ) from error
    printed = done.stderr + done.stdout  # a JVM that does not start says why on either
    match = re.search(r'version "(\d+)', printed)
    if done.returncode or not match:
        # It repeats the options of the environment first, and one of them may hold a secret.
        said = [line for line in printed.splitlines() if line and "Picked up " not in line]
        read = re.findall(r"Picked up (\w+):", printed)
        raise JobError(
            "\n  ".join([f"{java} does not start, it ends with code {done.returncode}", *said]),
            f"correct {' and '.join(read)} in the environment" if read else INSTALL,
            code=ErrorCode.JAVA,
        )
    if match[1] not in VERSIONS:
        raise JobError(
            f"{java} is Java {match[1]}; Spark with SPYT runs on 17 or 21",
            INSTALL,
            code=ErrorCode.JAVA,
        )
