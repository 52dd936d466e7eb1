#!/usr/bin/env bash
# Builds everything and runs the tests of this machine's release build. --all: also those of
# tests/further.txt, variants of others that take as long again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source toolchains/steps.sh
tests=release
case ${1-} in
  "") ;;
  --all) tests=release-all ;;
  *)
    echo "usage: ./test.sh [--all]" >&2
    exit 2
    ;;
esac

step "1/3 dependencies"
toolchains/get_deps.sh --install --install-lint --install-bindings
toolchains/get_kotlin.sh || echo "The tests of the Kotlin binding will be skipped."

step "2/3 building"
build_preset release

step "3/3 testing"
ctest --preset "$tests" --no-tests=error -j "$(nproc)"
