# 64-bit RISC-V Linux (rv64gc). Portable kernels: GCC 12 has no RISC-V vector support.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(arn_triple riscv64-linux-gnu)
set(XNNPACK_ENABLE_RISCV_VECTOR OFF CACHE BOOL "")
include("${CMAKE_CURRENT_LIST_DIR}/linux_cross.cmake")
