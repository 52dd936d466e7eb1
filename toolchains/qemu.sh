#!/bin/sh
# Runs a Linux program of another architecture, given by its ELF header, under qemu user emulation.
# ARENITE_QEMU_CPU selects the CPU: one of those listed by `qemu-<architecture>-static -cpu help`.
set -eu
machine=$(od -An -tu2 -j18 -N2 "$1" | tr -d ' ')
case $machine in
  183) qemu=aarch64 triple=aarch64-linux-gnu cpu=max ;;
  40) qemu=arm triple=arm-linux-gnueabihf cpu=cortex-a15 ;;
  243) qemu=riscv64 triple=riscv64-linux-gnu cpu=rv64 ;;
  *) echo "qemu.sh: no emulator for the architecture of $1 (ELF machine ${machine:-none})" >&2
     exit 126 ;;
esac
exec "qemu-$qemu-static" -cpu "${ARENITE_QEMU_CPU:-$cpu}" -L "/usr/$triple" "$@"
