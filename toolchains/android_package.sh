#!/usr/bin/env bash
# Where an Android SDK is: builds the AAR and publishes it to a Maven repository,
# bindings/java/build/maven.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: ANDROID_HOME=DIR toolchains/android_package.sh [GRADLE_OPTION...]

ANDROID_HOME is the folder of an Android SDK with NDK 28 and CMake 3.22 or later. The first run
needs Gradle 8.9 or later on the PATH, to write the wrapper bindings/java/gradlew; later runs use
the wrapper, which fetches Gradle 8.9 and checks its checksum. An app then has

  repositories { maven { url = uri("ARENITE/bindings/java/build/maven") } }
  dependencies { implementation("org.arenite:arenite-android:0.1.0") }

-PmavenRepository=URL publishes elsewhere.
USAGE
}

die() { printf 'android_package.sh: %s\n' "$*" >&2; exit 1; }

[[ ${1:-} != -h && ${1:-} != --help ]] || { usage; exit 0; }
cd "$(dirname "${BASH_SOURCE[0]}")/../bindings/java"
sdk=${ANDROID_HOME:-${ANDROID_SDK_ROOT:-}}
[[ -n $sdk ]] || die "ANDROID_HOME is not set: name the folder of an Android SDK."
[[ -d $sdk/platforms ]] || die "$sdk is not an Android SDK: it has no folder platforms."
export ANDROID_HOME=$sdk
if [[ ! -x gradlew ]]; then
  command -v gradle >/dev/null || die "the first run needs Gradle 8.9 or later on the PATH."
  gradle --console=plain wrapper
fi
./gradlew --console=plain "$@" :arenite-android:publish
find build/maven -name '*.aar'
