#!/usr/bin/env bash
# From a fresh checkout to a story: gets what is missing, builds, converts the model that comes with
# the sources, and lets it write. Running it again takes seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source toolchains/steps.sh

readonly bundle=build/fable-2m.arn

step "1/4 dependencies"
toolchains/get_deps.sh --install

step "2/4 building (the first time takes a few minutes)"
build_preset demo

step "3/4 converting models/fable/fable-2m, weights to int8"
build/demo/bin/arenite-convert models/fable/fable-2m -o "$bundle" --weights int8

readonly prompt=${1:-Once upon a time}
step "4/4 build/demo/bin/arenite run $bundle --prompt \"$prompt\" ..."
printf '%s' "$prompt" # the program prints what it adds to the prompt
build/demo/bin/arenite run "$bundle" --prompt "$prompt" \
  --max-tokens 300 --temperature 0.7 --seed 7
