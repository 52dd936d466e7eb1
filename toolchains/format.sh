#!/usr/bin/env bash
# Formats all C and C++ files of the project, or the given files, in place. Test lint.format checks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v clang-format-14 >/dev/null || {
  echo "clang-format-14 is missing: run toolchains/get_deps.sh --install-lint." >&2
  exit 1
}
if (($# == 0)); then
  mapfile -t files < <(find platform kernels runtime converter tools bindings tests -type f \
    \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) 2>/dev/null | sort)
  set -- "${files[@]}"
fi
clang-format-14 -i --style=file "$@"
