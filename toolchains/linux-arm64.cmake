# 64-bit ARM Linux: Debian's cross compiler, tests under qemu user emulation.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(arn_triple aarch64-linux-gnu)
include("${CMAKE_CURRENT_LIST_DIR}/linux_cross.cmake")
