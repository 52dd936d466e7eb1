#!/usr/bin/env bash
# Checks that Arenite builds for Android: with an NDK by building it, without one as far as headers
# allow.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: ANDROID_NDK_HOME=DIR toolchains/android_check.sh
       BIONIC_DIR=DIR       toolchains/android_check.sh

With ANDROID_NDK_HOME, the folder of an Android NDK: builds the shared library by the presets
android-arm64, android-armv7 and android-x86_64. The linker checks all symbols against API 24.

With BIONIC_DIR, a checkout of AOSP's platform/bionic: compiles all of platform, kernels and
runtime, what they use, and bindings/java's native part where it is there, by clang 14 against
bionic's headers for arm64 and armv7, and looks up every undefined symbol in bionic's lists of what
API 24 has. The C++ headers are LLVM's libc++, or those of ARN_LIBCXX; android/log.h is liblog's, or
that of ARN_LIBLOG, a folder with android/log.h. Those that are not installed are unpacked from
Debian's packages (toolchains/get_deps.sh --android). This shows that the sources are portable;
there is nothing to link or run.

ARN_API names another API level, ARN_ABIS fewer ABIs ("arm64", "armv7", "x86_64").
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source toolchains/steps.sh
readonly api=${ARN_API:-24}
die() { printf 'android_check.sh: %s\n' "$*" >&2; exit 1; }

check_with_ndk() {
  local abi
  for abi in ${ARN_ABIS:-arm64 armv7 x86_64}; do
    step "android-$abi, with the NDK"
    build_preset "android-$abi" arenite_shared
  done
}

# Compiles the native part of bindings/java with the JDK's jni.h. Prints the object files.
java_objects() {
  local build=$1 file out jdk
  [[ -d bindings/java ]] || return 0
  jdk=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v javac || true)")")")}
  [[ -f $jdk/include/jni.h ]] || die "bindings/java: jni.h is not in JAVA_HOME ($jdk/include)."
  while read -r file; do
    out="$build/$(basename "$file").o"
    # With the same flags as runtime/api.
    $(sed -nE 's/^ *"command": "(.*) -o .*api_model\.cc\.o.*/\1/p' \
      "$build/compile_commands.json") \
      -isystem "$jdk/include" -isystem "$jdk/include/linux" -I runtime/api/include \
      -I "$PWD" -c "$file" -o "$out" || die "$file does not compile."
    printf '%s\n' "$out"
  done < <(find bindings/java -name '*.cc' -o -name '*.c' | sort)
}

# Prints the first folder that contains the file; nothing if none does.
folder_with() {
  local file=$1 folder
  shift
  for folder in "$@"; do
    [[ ! -f $folder/$file ]] || { printf '%s\n' "$folder"; return; }
  done
}

readonly cxx_headers=usr/lib/llvm-14/include/c++/v1 log_headers=usr/include/android
find_headers() {
  libcxx=${ARN_LIBCXX:-$(folder_with vector /$cxx_headers .deps/android-headers/$cxx_headers)}
  liblog=${ARN_LIBLOG:-$(folder_with android/log.h /$log_headers \
    .deps/android-headers/$log_headers)}
}

check_with_bionic() {
  local libcxx liblog abi target arch build archives file
  for file in libc/include/stdio.h libc/libc.map.txt libm/libm.map.txt libdl/libdl.map.txt; do
    [[ -f $BIONIC_DIR/$file ]] || die "BIONIC_DIR: $BIONIC_DIR/$file is not there."
  done
  find_headers
  if [[ -z $libcxx || -z $liblog ]]; then
    toolchains/get_deps.sh --android
    find_headers
  fi
  [[ -f $libcxx/vector ]] || die "libc++'s headers are not in '$libcxx': install" \
    "libc++-14-dev, or name their folder by ARN_LIBCXX."
  [[ -f $liblog/android/log.h ]] || die "android/log.h is not in '$liblog': install" \
    "android-liblog-dev, or name its folder by ARN_LIBLOG."
  libcxx=$(realpath "$libcxx")
  command -v clang++-14 >/dev/null ||
    die "clang 14 is missing: toolchains/get_deps.sh --install-fuzz."
  local shim="$PWD/build/android-check/shim"
  mkdir -p "$shim/android"
  printf '#define __NDK_MAJOR__ 27\n#define __NDK_MINOR__ 0\n' >"$shim/android/ndk-version.h"
  cp "$liblog/android/log.h" "$shim/android/log.h"
  for abi in ${ARN_ABIS:-arm64 armv7}; do
    case $abi in
      arm64) target="aarch64-linux-android$api" arch=arm64 ;;
      armv7) target="armv7a-linux-androideabi$api" arch=arm ;;
      *) die "bionic's headers alone serve arm64 and armv7, not '$abi'." ;;
    esac
    build="build/android-check/$abi"
    step "$abi, clang against bionic's headers"
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_TOOLCHAIN_FILE="$PWD/toolchains/bionic.cmake" -DBIONIC_DIR="$BIONIC_DIR" \
      -DARN_LIBCXX="$libcxx" -DARN_TARGET="$target" -DARN_SHIM="$shim" -DARENITE_TESTS=OFF \
      -DARENITE_TOOLS=OFF -DARENITE_INSTALL=OFF -DARENITE_WERROR=ON >"$build.log" 2>&1 ||
      { tail -n 20 "$build.log"; die "cmake could not configure $abi (log: $build.log)."; }
    cmake --build "$build" --target arn_android_objects >"$build.log" 2>&1 ||
      { grep -E -m 20 'error:|FAILED' "$build.log"; die "$abi does not build (log: $build.log)."; }
    mapfile -t archives < <(find "$build/lib" -name '*.a' | sort)
    file=$(java_objects "$build")
    [[ -z $file ]] || mapfile -t -O "${#archives[@]}" archives <<<"$file"
    python3 toolchains/android_symbols.py --bionic "$BIONIC_DIR" --api "$api" --arch "$arch" \
      --nm llvm-nm-14 "${archives[@]}"
  done
}

case ${1:-} in
  '') ;;
  -h|--help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
if [[ -n ${ANDROID_NDK_HOME:-} ]]; then
  check_with_ndk
elif [[ -n ${BIONIC_DIR:-} ]]; then
  check_with_bionic
else
  echo "Neither ANDROID_NDK_HOME nor BIONIC_DIR is set: nothing was checked." >&2
  usage >&2
  exit 77
fi
