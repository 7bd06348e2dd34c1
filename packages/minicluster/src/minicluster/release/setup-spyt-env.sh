#!/usr/bin/env bash
# Unpack Spark and SPYT into the sandbox of a job. SPYT's commands begin with this script.
set -e
while [[ $# -gt 0 ]]; do
  case $1 in
    # Absolute: a worker starts drivers and executors in folders of their own.
    --spark-home) home=$(realpath "$2"); shift 2 ;;
    --spark-distributive) archive=$2; shift 2 ;;
    *) echo "setup-spyt-env.sh: unknown argument $1" >&2; exit 1 ;;
  esac
done
unpack_zip() { # by Python, which a node has; not each has unzip. extractall() makes files of links
  python3 -I - "$1" "$2" <<'PYTHON'
import os, stat, sys, zipfile

archive = zipfile.ZipFile(sys.argv[1])
for entry in archive.infolist():
    path, mode = archive.extract(entry, sys.argv[2]), entry.external_attr >> 16
    if stat.S_ISLNK(mode):
        os.remove(path)
        os.symlink(archive.read(entry), path)
    elif mode:
        os.chmod(path, stat.S_IMODE(mode))
PYTHON
}
tar -xf "$archive" -C "$home"
mv "$home/${archive%.tgz}" "$home/spark"
unpack_zip spyt-package.zip "$home"
echo "-javaagent:$(ls "$home"/spyt-package/jars/common/*spyt-patch-agent*)" > "$home/spyt-package/conf/java-opts"
shopt -s nullglob
for file in *-arc-dep.*; do # an archive of the job (SPYT, YTsaurusOperationManager, downloadName)
  folder=${file%-arc-dep.*}
  mkdir -p "$folder"
  case $file in *.zip | *.jar) unpack_zip "$file" "$folder" ;; *) tar -xf "$file" -C "$folder" ;; esac
done
