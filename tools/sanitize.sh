#!/usr/bin/env bash
# Builds the core with sanitizers beside the usual one and runs tests on it. Usage: tools/sanitize.sh PYTHON [MODE]
# Mode "address": the core's tests and the fuzz of arrays, with the address and undefined-behavior sanitizers.
# Mode "thread": models fitted and asked by several threads, with the thread sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
mode=${2:-address}
case $mode in
  address) sanitizers=address,undefined runtime=libasan.so ;;
  thread) sanitizers=thread runtime=libtsan.so ;;
  *) echo "the mode is address or thread, not $mode" >&2; exit 2 ;;
esac
build=build/sanitize-$mode
site=$build/site

"$python" -m pip install --quiet --no-build-isolation --no-deps --target "$site" --upgrade \
  --config-settings=build-dir="$build/cmake" \
  --config-settings=cmake.define.HILBIN_SANITIZE="$sanitizers" .

# Python itself leaks by design, so leaks are not looked for; its binary is not built with
# sanitizers, so their runtime is loaded first, and with it the C++ runtime whose exceptions they
# watch. -S skips the editable install's import hook.
packages=$("$python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=suppressions=$PWD/tools/tsan.supp:exitcode=66:log_path=$PWD/$build/race
compiler=${CXX:-g++}
preload="$($compiler -print-file-name=$runtime) $($compiler -print-file-name=libstdc++.so)"
export PYTHONPATH=$PWD/$site:$packages LD_PRELOAD=$preload
"$python" -S -c "import hilbin; assert 'sanitize' in hilbin.__file__, hilbin.__file__"
if [ "$mode" = thread ]; then
  if "$python" -S tools/race.py; then
    echo "the race of tools/race.py is not found" >&2
    exit 1
  fi
  rm -f "$build"/race.*
  folders=(tests/estimators tests/maps tests/kernels tests/images tests/solvers tests/stats tests/stream)
  "$python" -S -m pytest -q -p no:cacheprovider tests/test_threads.py tests/test_parallel.py &&
    "$python" -S -m pytest -q -p no:cacheprovider -k "jobs or thread" "${folders[@]}" ||
    { cat "$build"/race.* >&2; exit 1; }
else
  "$python" -S -m pytest -q -p no:cacheprovider tests/_core tests/solvers/test_lookup.py \
    tests/solvers/test_smo.py tests/solvers/test_coded.py tests/test_arrays.py tests/detect/test_search.py
  "$python" -S tests/fuzz/fuzzing.py arrays --count "${FUZZ:-2000}"
fi
