#!/usr/bin/env bash
# Makes tests/fuzz/corpus/NAME of what is kept there and of corpora that libFuzzer has filled: the
# fewest and smallest inputs with the same coverage, up to a size that a repository can bear.
# usage: tests/fuzz/minimise.sh NAME [FOLDER...]   (needs the preset fuzz built)
#        tests/fuzz/minimise.sh --all FOLDER       (FOLDER/NAME for every NAME that is there)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
most_bytes=40000 most_inputs=100  # of a target: all of them must stay below 1 MB

minimise() { # NAME FOLDER...
  local name=$1 program="build/fuzz/bin/fuzz_$1" kept="tests/fuzz/corpus/$1"
  local all merged digest file bytes total=0 n=0
  shift
  if [[ ! -x $program ]]; then
    echo "minimise.sh: $program is missing: cmake --build --preset fuzz" >&2
    exit 2
  fi
  all=$(mktemp -d)
  merged="$all.merged"
  mkdir -p "$merged" "$kept"
  # Smaller ones first: libFuzzer keeps the first input that reaches a place.
  "$program" -merge=1 -max_len=16384 -timeout=10 -verbosity=0 "$merged" "$kept" "$@" >/dev/null 2>&1
  rm -f "$kept"/*
  # By their digests: a fair sample, and the same one each time.
  while read -r digest file; do
    bytes=$(stat -c %s "$file")
    if ((n == most_inputs)); then break; fi
    if ((total + bytes > most_bytes)); then continue; fi
    total=$((total + bytes)) n=$((n + 1))
    cp "$file" "$kept/${digest:0:12}"
  done < <(find "$merged" -type f -exec sha256sum {} + | sort)
  rm -rf "$all" "$merged"
  printf '%-16s %4d inputs %7d bytes\n' "$name" "$(find "$kept" -type f | wc -l)" \
    "$(find "$kept" -type f -printf '%s\n' | awk '{n += $1} END {print n + 0}')"
}

case ${1-} in
  --all)
    for folder in "${2:?}"/*/; do minimise "$(basename "$folder")" "$folder"; done
    ;;
  [a-z]*) minimise "$@" ;;
  *)
    sed -n 4,5p "$0" >&2
    exit 2
    ;;
esac
