#!/usr/bin/env bash
# Fetches the pinned Kotlin compiler, with kotlinx.coroutines, into .deps/kotlin or the given
# folder: for bindings/kotlin and its tests. Takes it from the npm registry, by npm's own client.
set -euo pipefail

readonly version=2.4.20
sha512=205e4854cecba4f840fe7b47410a5a56dd72c6969a428bed11560bcaa58cb9a2
sha512+=ebd177a52cf3e6effb0ce872e1b5c4638e3a12b0aec8ee53f693360990ccbbdf
readonly sha512
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly folder="${1:-$root/.deps/kotlin}"

die() { printf '[kotlin] error: %s\n' "$*" >&2; exit 1; }

if [[ $(cat "$folder/build.txt" 2>/dev/null || true) == "$version" ]]; then exit 0; fi
command -v npm >/dev/null || die "npm is missing: install it, or Kotlin $version in $folder."
temporary="$(mktemp -d)"
trap 'rm -rf "$temporary"' EXIT
(cd "$temporary" && npm pack --silent "kotlin-compiler@$version" >/dev/null) ||
  die "the npm registry has no kotlin-compiler $version."
archive="$temporary/kotlin-compiler-$version.tgz"
[[ $(sha512sum <"$archive") == "$sha512  -" ]] ||
  die "kotlin-compiler $version has another checksum than the pinned one."
mkdir -p "$folder"
tar -xzf "$archive" -C "$folder" --strip-components=1 package/bin package/lib package/license \
  package/build.txt
chmod +x "$folder"/bin/*
printf '[kotlin] %s\n' "$folder"
