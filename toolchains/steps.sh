# shellcheck shell=bash
# Sourced by demo.sh, test.sh and .ci/run: prints a line per step and the progress of builds.

# Joins sources, those of the library included, where a preset does not say otherwise: builds to be
# tested, not measured, take half the time.
export ARENITE_UNITY_BUILD=ALL

step() { printf '\n==> [%4ds] %s\n' "$SECONDS" "$*"; }

# Copies a build's output to a log and prints a line for each tenth of it.
_tenths() {
  awk -v log_file="$1" '
    { print > log_file }
    match($0, /^\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, 2, RLENGTH - 2), of, "/")
      tenth = int(10 * of[1] / of[2])
      if (of[2] >= 20 && tenth > shown) {
        shown = tenth
        printf "    built %d of %d\n", of[1], of[2]
        fflush()
      }
    }'
}

# build_preset PRESET [TARGET...]: configures once and builds; prints the end of the log on failure.
build_preset() {
  local preset=$1 log="build/$1/build.log"
  shift
  mkdir -p "build/$preset"
  if [[ ! -f build/$preset/build.ninja ]] &&
    ! cmake --preset "$preset" >"$log" 2>&1; then
    tail -n 40 "$log"
    printf 'error: cmake could not configure %s (log: %s).\n' "$preset" "$log" >&2
    return 1
  fi
  local targets=()
  (($# == 0)) || targets=(--target "$@")
  # --build reconfigures automatically if a CMakeLists.txt has changed.
  if ! cmake --build --preset "$preset" "${targets[@]}" 2>&1 | _tenths "$log"; then
    grep -A 40 -m 1 -E '^FAILED:|CMake Error' "$log" || tail -n 40 "$log"
    printf 'error: the build of %s failed (log: %s).\n' "$preset" "$log" >&2
    return 1
  fi
}
