#!/usr/bin/env bash
# Unpack Spark and SPYT into the sandbox of a job. SPYT's commands begin with this script.
set -e
while [[ $# -gt 0 ]]; do
  case $1 in
    --spark-home) home=$2; shift 2 ;;
    --spark-distributive) archive=$2; shift 2 ;;
    *) echo "setup-spyt-env.sh: unknown argument $1" >&2; exit 1 ;;
  esac
done
tar -xf "$archive" -C "$home"
mv "$home/${archive%.tgz}" "$home/spark"
unzip -qo spyt-package.zip -d "$home"
echo "-javaagent:$(ls "$home"/spyt-package/jars/common/*spyt-patch-agent*)" > "$home/spyt-package/conf/java-opts"
shopt -s nullglob
for file in *-arc-dep.*; do # an archive of the job (SPYT, YTsaurusOperationManager, downloadName)
  folder=${file%-arc-dep.*}
  mkdir -p "$folder"
  case $file in *.zip | *.jar) unzip -qo "$file" -d "$folder" ;; *) tar -xf "$file" -C "$folder" ;; esac
done
