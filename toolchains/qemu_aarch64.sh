#!/bin/sh
# Runs an arm64 Linux program under emulation. ARENITE_QEMU_CPU names the CPU: cortex-a53,
# cortex-a76, max (the default), and what else `qemu-aarch64-static -cpu help` lists.
exec qemu-aarch64-static -cpu "${ARENITE_QEMU_CPU:-max}" -L /usr/aarch64-linux-gnu "$@"
