#!/usr/bin/env bash
# Builds the source archive twice and compares the bytes. Usage: tools/sdist.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-dist}
# The time of the last commit stands for the time of every file.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
python=${PYTHON:-python3}
for target in "$folder" "$again"; do
  "$python" -m pip --quiet --disable-pip-version-check install build
  "$python" -m build --sdist --outdir "$target" >/dev/null
  sleep 1.1 # a clock that shows would differ
done
archive=$(cd "$again" && ls hilbin-*.tar.gz)
cmp "$folder/$archive" "$again/$archive"
sha256sum "$folder/$archive"
