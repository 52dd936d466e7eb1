#!/usr/bin/env bash
# Fetches the pinned third-party sources of deps.lock into .deps/. Skips everything that is already
# present with the right checksum.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: toolchains/get_deps.sh [--install] [--install-cross] [--install-lint] [--install-fuzz]
                              [--install-bindings] [--android] [--from DIR]

  --install        install missing Debian packages for the native build first (needs root or sudo)
  --install-cross  the same for the cross builds (arm64, armv7, riscv64) and their emulator
  --install-lint   the same for clang-format, for clang, which compiles programs that use the
                   library in the tests, for debootstrap, which makes the system that the packages
                   are tried in, and for valgrind, which runs readers of foreign bytes
  --install-fuzz   the same for clang, which includes libFuzzer
  --install-bindings
                   the same for the tests of the bindings: a JDK and mypy
  --android        unpack the headers that toolchains/android_check.sh needs beside bionic's, unless
                   they are installed: libc++'s and liblog's
  --from DIR       look for the archives of deps.lock in DIR before downloading them
                   (ARENITE_ARCHIVES=DIR in the environment does the same)

glslc and spirv-val, which build Vulkan's shaders, and lavapipe, the loader and the validation
layer, which test them, are unpacked from Debian's packages into .deps/vulkan-tools,
unless they are installed. Without such packages, install them yourself: without glslc
the Vulkan backend is left out.

Each archive is taken from the first place that has it: DIR, Debian's sources through apt, the
upstream git repository. Nothing is written outside the checkout, except for the packages that
--install* asks for.
USAGE
}

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly root
readonly lock="$root/toolchains/deps.lock"
readonly deps="$root/.deps"
readonly downloads="$deps/downloads"

archives_dir="${ARENITE_ARCHIVES:-}"
packages=()
needs_compiler=0
for_android=0

say() { printf '[deps] %s\n' "$*"; }
die() { printf '[deps] error: %s\n' "$*" >&2; exit 1; }

while (($#)); do
  case "$1" in
    --install)
      needs_compiler=1
      packages+=(cmake ninja-build python3 git xz-utils ca-certificates) ;;
    --install-cross)
      packages+=(qemu-user-static)
      for triple in aarch64-linux-gnu arm-linux-gnueabihf riscv64-linux-gnu; do
        packages+=("g++-12-$triple" "gcc-12-$triple")
      done ;;
    --install-lint)
      packages+=(clang-format-14 clang-14 debootstrap valgrind libc6-dbg) ;;
    --install-fuzz)
      packages+=(clang-14 libclang-rt-14-dev lld-14) ;;
    --install-bindings)
      packages+=(openjdk-17-jdk-headless mypy) ;;
    --android)
      for_android=1 ;;
    --from)
      shift
      archives_dir="${1:-}"
      [[ -d $archives_dir ]] || die "--from needs an existing folder, not '$archives_dir'." ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die "unknown argument '$1'." ;;
  esac
  shift
done

# ---- Debian packages -----------------------------------------------------------------------------

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true) == installed ]]
}

as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }

readonly log="$deps/install.log"
lists=old

update_lists() {
  [[ $lists == old ]] || return 0
  lists=new
  mkdir -p "$deps"
  # An unreadable third-party apt source must not stop us.
  as_root apt-get update -qq >"$log" 2>&1 </dev/null || true
}

# Fails with the command for an administrator if the caller may not install.
check_root() {
  ((EUID == 0)) || command -v sudo >/dev/null || die "these packages are missing, and installing" \
    "them needs root. Ask an administrator to run: apt-get install --no-install-recommends $*"
}

# GCC 12 where the system has it (Ubuntu 22.04's default is GCC 11), else the default, which is
# newer.
choose_compiler() {
  if is_installed g++-12; then packages+=(g++-12 gcc-12); return; fi
  if is_installed g++ && (($(g++ -dumpversion | cut -d. -f1) >= 12)); then return; fi
  check_root g++-12 gcc-12 "${packages[@]}"
  update_lists
  if apt-cache show g++-12 >/dev/null 2>&1; then packages+=(g++-12 gcc-12)
  else packages+=(g++ gcc); fi
}

install_packages() {
  local missing=() p
  ((!needs_compiler)) || choose_compiler
  for p in "${packages[@]}"; do
    is_installed "$p" || missing+=("$p")
  done
  if ((${#missing[@]} == 0)); then say "Debian packages: all installed"; return; fi
  check_root "${missing[@]}"
  say "Debian packages: installing ${missing[*]}"
  update_lists
  if ! as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    die "apt-get could not install ${missing[*]} (log: $log)."
  fi
}

# ---- Debian's sources, through apt ---------------------------------------------------------------

readonly apt_dir="$deps/apt"

# Accepts expired indices (a frozen mirror, a board with a wrong clock): the files fetched must
# match the sha256 of deps.lock.
private_apt() {
  apt-get -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt_dir/sources" \
    -o Dir::State::Lists="$apt_dir/lists" -o Dir::Cache="$apt_dir/cache" \
    -o Acquire::Check-Valid-Until=false -o Acquire::Check-Date=false -o APT::Sandbox::User=root "$@"
}

# Writes a private sources file for all Debian suites on the mirror configured on this machine.
# Fails if there is none. Does not touch the machine's own apt configuration and lists.
write_apt_sources() {
  local file uri='' signed=''
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ -r $file && -z $uri ]] || continue
    read -r uri signed < <(awk -v RS='' '
      /keyrings\/debian-archive/ && /(^|\n)Components:[^\n]*main/ && !/Suites:[^\n]*security/ {
        n = split($0, line, "\n")
        for (i = 1; i <= n; ++i) {
          split(line[i], field, /[ \t]+/)
          if (field[1] == "URIs:") uri = field[2]
          if (field[1] == "Signed-By:") signed = field[2]
        }
        print uri, signed
        exit
      }' "$file") || true
  done
  if [[ -z $uri ]]; then
    uri=$(sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+) +[^ ]+ +.*\bmain\b.*/\2/p' \
      /etc/apt/sources.list 2>/dev/null | grep -E '/debian/?$' | head -n 1) || true
    signed=/usr/share/keyrings/debian-archive-keyring.gpg
  fi
  [[ -n $uri && -r $signed ]] || return 1
  mkdir -p "$apt_dir/sources" "$apt_dir/lists/partial" "$apt_dir/cache/archives/partial"
  # testing keeps a version for a while after sid has moved on.
  printf '%s\n' "Types: deb-src" "URIs: $uri" "Suites: bookworm trixie testing sid" \
    "Components: main" "Signed-By: $signed" "" \
    "Types: deb" "URIs: $uri" "Suites: $(. /etc/os-release && printf '%s' "$VERSION_CODENAME")" \
    "Components: main" "Signed-By: $signed" >"$apt_dir/sources/debian.sources"
}

apt_state=unknown  # unknown | ready | none

prepare_apt() {
  [[ $apt_state == unknown ]] || { [[ $apt_state == ready ]]; return; }
  apt_state=none
  [[ -x /usr/lib/apt/apt-helper ]] || return 1
  write_apt_sources || return 1
  say "reading the index of Debian's sources"
  # apt fails if the mirror lacks a suite; that is harmless as long as another suite has the file.
  private_apt update >"$apt_dir/update.log" 2>&1 || true
  apt_state=ready
}

# fetch_from_debian PACKAGE ARCHIVE SHA256 OUT
fetch_from_debian() {
  local package=$1 archive=$2 sha=$3 out=$4 suite line uri
  prepare_apt || return 1
  for suite in sid testing trixie bookworm; do
    line=$(private_apt --print-uris --download-only source "$package/$suite" 2>/dev/null |
      grep -F " $archive ") || continue
    uri=${line#\'}; uri=${uri%%\'*}
    if /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$uri" "$out" \
        "SHA256:$sha" >"$apt_dir/download.log" 2>&1; then
      return 0
    fi
  done
  return 1
}

# ---- from an archive or a repository to .deps/<name> ---------------------------------------------

sha256_of() { sha256sum "$1" | cut -d' ' -f1; }

# unpack ARCHIVE FOLDER [INNER]: drops the archive's top folder if it has exactly one. With INNER,
# keeps only that subfolder.
unpack() {
  local tmp="$2.tmp" inner
  rm -rf "$tmp"
  mkdir -p "$tmp"
  tar -xf "$1" -C "$tmp" --no-same-owner
  inner=("$tmp"/*)
  rm -rf "$2"
  if ((${#inner[@]} == 1)) && [[ -d ${inner[0]} ]]; then
    mv "${inner[0]}${3:+/$3}" "$2"
    rm -rf "$tmp"
  else
    mv "$tmp" "$2"
  fi
}

# clone REPOSITORY REF FOLDER: fetches one commit, without history.
clone() {
  local tmp="$3.tmp"
  command -v git >/dev/null || return 1
  rm -rf "$tmp"
  git init -q "$tmp"
  if ! GIT_TERMINAL_PROMPT=0 git -C "$tmp" fetch -q --depth 1 "$1" "$2" 2>"$deps/git.log" \
      </dev/null; then
    rm -rf "$tmp"
    return 1
  fi
  git -C "$tmp" -c advice.detachedHead=false checkout -q FETCH_HEAD
  rm -rf "$tmp/.git" "$3"
  mv "$tmp" "$3"
}

get() {
  local name=$1 version=$2 sha=$3 package=$4 archive=${5%%:*} inner='' repository=$6 ref=$7
  [[ $5 != *:* ]] || inner=${5#*:}
  local folder="$deps/$name" file="$downloads/$archive" from=''

  if [[ -f $folder/.arenite-stamp && $(<"$folder/.arenite-stamp") == "$sha" ]]; then
    say "$name $version: present"
    return
  fi

  if [[ -f $file && $(sha256_of "$file") == "$sha" ]]; then
    from="an earlier download"
  elif [[ -n $archives_dir && -f $archives_dir/$archive ]]; then
    [[ $(sha256_of "$archives_dir/$archive") == "$sha" ]] ||
      die "$archives_dir/$archive does not have the sha256 of toolchains/deps.lock."
    file="$archives_dir/$archive"
    from="$archives_dir"
  elif fetch_from_debian "$package" "$archive" "$sha" "$file"; then
    from="Debian's sources"  # apt-helper has checked the sha256
  fi

  if [[ -n $from ]]; then
    unpack "$file" "$folder" "$inner"
  elif clone "$repository" "$ref" "$folder"; then
    from="$repository"
  else
    die "neither Debian's sources nor $repository could be reached for $name: give a folder with" \
      "$archive in it with --from."
  fi
  printf '%s\n' "$sha" >"$folder/.arenite-stamp"
  say "$name $version: from $from"
}

# ---- programs and headers from Debian packages, not installed ------------------------------------

readonly vulkan_packages=(glslc spirv-tools libvulkan1 mesa-vulkan-drivers
  vulkan-validationlayers)

# unpack_debs FOLDER PACKAGE...: unpacks the packages and their missing dependencies without
# installing anything. apt verifies them against the mirror's signature.
unpack_debs() {
  local folder=$1 uri file package
  shift
  prepare_apt || return 1
  rm -rf "$folder" "$apt_dir/debs"
  mkdir -p "$folder" "$apt_dir/debs"
  while read -r uri file _; do
    package=${file%%_*}
    # An installed package that apt would upgrade is used as is.
    ! is_installed "$package" || continue
    (cd "$apt_dir/debs" && private_apt download "$package") >>"$apt_dir/download.log" 2>&1 ||
      return 1
  done < <(private_apt -y --no-install-recommends --print-uris install "$@" 2>/dev/null |
    grep "^'")
  for file in "$apt_dir"/debs/*.deb; do
    [[ -f $file ]] || return 1
    dpkg -x "$file" "$folder"
  done
}

# get_debs FOLDER WHAT PACKAGE...: unpacks the packages that are not installed to .deps/FOLDER.
# Fails if they are unavailable.
get_debs() {
  local folder="$deps/$1" what=$2 missing=() p
  shift 2
  if ! command -v dpkg >/dev/null; then
    say "$what: those of this machine, if it has them"
    return
  fi
  for p in "$@"; do
    is_installed "$p" || missing+=("$p")
  done
  if ((${#missing[@]} == 0)); then
    say "$what: installed"
  elif [[ -f $folder/.arenite-stamp && $(<"$folder/.arenite-stamp") == "${missing[*]}" ]]; then
    say "$what: present"
  elif unpack_debs "$folder" "${missing[@]}"; then
    # A driver's manifest names its library; relative paths are relative to the manifest.
    for p in "$folder"/usr/share/vulkan/icd.d/*.json; do
      [[ ! -f $p ]] || sed -i 's|"library_path": "/usr/|"library_path": "../../../|' "$p"
    done
    printf '%s\n' "${missing[*]}" >"$folder/.arenite-stamp"
    say "$what: from Debian's packages ${missing[*]}"
  else
    rm -rf "$folder"
    say "$what: ${missing[*]} could not be had"
    return 1
  fi
}

if ((${#packages[@]} > 0)); then
  if [[ -r /etc/debian_version ]] && command -v apt-get >/dev/null; then
    install_packages
  else
    say "this is not Debian: the packages ${packages[*]} are taken to be installed"
  fi
fi

mkdir -p "$downloads"
while read -r -a field; do
  [[ ${#field[@]} -eq 0 || ${field[0]} == \#* ]] && continue
  ((${#field[@]} == 7)) ||
    die "toolchains/deps.lock: the line of '${field[0]}' has ${#field[@]} fields, not 7."
  get "${field[@]}"
done <"$lock"
get_debs vulkan-tools "Vulkan's tools" "${vulkan_packages[@]}" ||
  say "the Vulkan backend is left out"
if ((for_android)); then
  get_debs android-headers "headers for Android" libc++-14-dev android-liblog-dev ||
    die "install libc++-14-dev and android-liblog-dev."
fi
rm -rf "$apt_dir"  # index of all Debian sources: large, and soon outdated
