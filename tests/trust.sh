#!/usr/bin/env bash
# Runs what makes Arenite trusted beyond its ordinary tests (docs/testing.md): failing calls, loss
# of power, damaged input, known weaknesses, sandbox, soak, supply chain. Prints one table; fails if
# anything did.
# usage: tests/trust.sh [ci|nightly|long]   (minutes, an hour, a day; default ci)
# With the preset fuzz built (cmake --build --preset fuzz), nightly and long run libFuzzer too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
length=${1-ci}
case $length in
  ci | nightly | long) ;;
  *)
    echo "usage: tests/trust.sh [ci|nightly|long]" >&2
    exit 2
    ;;
esac
if [[ ! -f build/release/build.ninja ]]; then cmake --preset release; fi
cmake --build --preset release --target arenite_tool arenite-convert arn_fault_shim arn_disk_log \
  trust_subject trust_confined trust_cve_test trust_sandbox_test trust_soak_test fuzz_test \
  state_fuzz_test text_fuzz_test constraint_fuzz_test fuzz_corpus_test memory_failing_os_test \
  memory_failing_files_test
exec python3 -B tests/trust/trust.py "$length"
