#!/usr/bin/env bash
# Builds arenite, arenite-convert, libarenite.so and libarenite.a twice and compares their bytes.
# Sources, dependencies and build folders have paths of different lengths; the builds run one after
# the other, so their times differ too. No compiler cache: its launchers are unset and ccache is
# disabled, so that both builds compile everything. Minutes; the long form of tests/trust.sh.
# usage: reproducible.sh [--reduced] [FOLDER]   (of unpacked dependencies; default .deps)
# --reduced: without the server and Vulkan, SIMD for this machine only, sources joined.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
options=()
if [[ ${1-} == --reduced ]]; then
  options=(-DARENITE_SERVE=OFF -DARENITE_VULKAN=OFF -DARENITE_SIMD=native
    -DARENITE_UNITY_BUILD=ALL)
  shift
fi
deps=$(cd "${1-.deps}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
export CCACHE_DISABLE=1

copy() { # NAME OF THE FOLDER
  local source="$work/$1" folder
  mkdir -p "$source/.deps"
  git ls-files -z | xargs -0 cp --parents -t "$source"
  for folder in "$deps"/*/; do
    if [[ -e $folder/.arenite-stamp ]]; then cp -a "${folder%/}" "$source/.deps/"; fi
  done
}

build() { # NAME OF THE FOLDER, TIME ZONE
  local source="$work/$1"
  export TZ=$2
  {
    cmake -S "$source" -B "$source/out" -G Ninja -DCMAKE_BUILD_TYPE=Release -DARENITE_TESTS=OFF \
      "${options[@]}" &&
      cmake --build "$source/out" --target arenite_tool arenite-convert arenite_shared \
        arenite_archive
  } >"$work/$1.log" 2>&1 || {
    tail -n 20 "$work/$1.log" >&2
    exit 2
  }
}

# Both before the first build, so that what changes meanwhile changes neither.
copy a
copy a_folder_with_a_longer_name
build a UTC
build a_folder_with_a_longer_name Asia/Kathmandu
failed=0
files=(bin/arenite bin/arenite-convert lib/libarenite.so toolchains/package/libarenite.a)
for file in "${files[@]}"; do
  sha256sum "$work"/a*/out/"$file" | sed "s|$work/||"
  cmp "$work/a/out/$file" "$work/a_folder_with_a_longer_name/out/$file" || failed=$((failed + 1))
done
if ((failed)); then  # a path that is left in a program is the usual reason
  grep -aoh "$work[^[:cntrl:]]*" "$work"/a/out/bin/arenite* | sort -u | head || true
fi
printf '%-18s %7d %9d\n' all ${#files[@]} $failed
exit $((failed != 0))
