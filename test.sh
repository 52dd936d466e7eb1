#!/usr/bin/env bash
# Builds everything and runs every test of this machine's release build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source toolchains/steps.sh

step "1/3 dependencies"
toolchains/get_deps.sh --install --install-lint --install-bindings
toolchains/get_kotlin.sh || echo "The tests of the Kotlin binding will be skipped."

step "2/3 building"
build_preset release

step "3/3 testing"
ctest --preset release --no-tests=error -j "$(nproc)"
