#!/usr/bin/env bash
# Runs the kept inputs and seeds of all fuzz targets under Valgrind's memcheck, which fails the run
# for a use of uninitialised memory or an access outside a heap block, also in third-party code.
# Shows first that memcheck finds a planted use.
# usage: memcheck.sh FUZZ_CORPUS_TEST [ARGUMENT...]
#   ARN_FUZZ_TIMES=N: and so many times the mutations of a plain run; default 0
set -euo pipefail
program=$1
shift
readonly found=99
memcheck=(valgrind --quiet "--error-exitcode=$found")

status=0
"${memcheck[@]}" "$program" --use-uninitialised >/dev/null 2>&1 || status=$?
if ((status != found)); then
  echo "memcheck did not find the use of an uninitialised byte: status $status, expected $found" >&2
  exit 1
fi
ARN_FUZZ_TIMES=${ARN_FUZZ_TIMES-0} exec "${memcheck[@]}" "$program" --gtest_filter='Targets/*' "$@"
