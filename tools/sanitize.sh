#!/usr/bin/env bash
# Builds the core with the address and undefined-behavior sanitizers beside the usual one and runs
# the core's tests and the fuzz of arrays on it. Usage: tools/sanitize.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
build=build/sanitize
site=$build/site

"$python" -m pip install --quiet --no-build-isolation --no-deps --target "$site" --upgrade \
  --config-settings=build-dir="$build/cmake" \
  --config-settings=cmake.define.HILBIN_SANITIZE=ON .

# Python itself leaks by design, so leaks are not looked for; its binary is not built with
# sanitizers, so their runtime is loaded first, and with it the C++ runtime whose exceptions they
# watch. -S skips the editable install's import hook.
packages=$("$python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
compiler=${CXX:-g++}
preload="$($compiler -print-file-name=libasan.so) $($compiler -print-file-name=libstdc++.so)"
export PYTHONPATH=$PWD/$site:$packages LD_PRELOAD=$preload
"$python" -S -c "import hilbin; assert 'sanitize' in hilbin.__file__, hilbin.__file__"
"$python" -S -m pytest -q -p no:cacheprovider tests/_core tests/solvers/test_lookup.py \
  tests/solvers/test_smo.py tests/solvers/test_coded.py tests/test_arrays.py
"$python" -S tests/fuzz/harness.py arrays --count "${FUZZ:-2000}"
