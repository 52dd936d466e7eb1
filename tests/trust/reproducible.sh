#!/usr/bin/env bash
# Builds the library twice, from copies of the tracked sources in two folders, without a cache, and
# compares the bytes. The pinned dependencies are built twice too. Minutes; the long form only.
# usage: reproducible.sh [FOLDER]   (of unpacked dependencies; default .deps)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
deps=$(cd "${1-.deps}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER

build() { # NAME OF THE FOLDER
  local source="$work/$1"
  mkdir -p "$source"
  git ls-files -z | xargs -0 cp --parents -t "$source"
  cmake -S "$source" -B "$source/out" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    "-DARENITE_DEPS_DIR=$deps" -DARENITE_TESTS=OFF -DARENITE_SERVE=OFF \
    -DARENITE_VULKAN=OFF -DARENITE_SIMD=native -DARENITE_UNITY_BUILD=ALL >"$work/$1.log" 2>&1
  cmake --build "$source/out" --target arenite_shared >>"$work/$1.log" 2>&1 || {
    tail -n 20 "$work/$1.log" >&2
    exit 2
  }
  find "$source/out" -name 'libarenite.so.*[0-9]' -type f | head -n 1
}

first=$(build a)
second=$(build a_folder_with_a_longer_name)
sha256sum "$first" "$second" | sed "s|$work/||"
if cmp "$first" "$second"; then
  printf '%-18s %7d %9d\n' all 1 0
else
  printf '%-18s %7d %9d\n' all 1 1
  exit 1
fi
