# 32-bit ARM Linux (armhf) on cores with NEON and fused multiply-add: Cortex-A7, A15, A17 and all
# later cores in 32-bit mode. Cortex-A8 and A9 lack VFPv4.
set(CMAKE_SYSTEM_PROCESSOR armv7-a)
set(arn_triple arm-linux-gnueabihf)
set(CMAKE_C_FLAGS_INIT "-march=armv7-a -mfpu=neon-vfpv4 -mfloat-abi=hard")
# Silences notes about the argument passing change in GCC 7.
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -Wno-psabi")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
include("${CMAKE_CURRENT_LIST_DIR}/linux_cross.cmake")
