# Common part of Debian's cross compilers. Included by linux-*.cmake with
#   arn_triple   aarch64-linux-gnu, ...
set(CMAKE_SYSTEM_NAME Linux)

set(CMAKE_C_COMPILER ${arn_triple}-gcc-12)
set(CMAKE_CXX_COMPILER ${arn_triple}-g++-12)
set(CMAKE_ASM_COMPILER ${arn_triple}-gcc-12)

# Programs (flatc, glslc) come from the host, everything else from the target.
set(CMAKE_FIND_ROOT_PATH /usr/${arn_triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# A script instead of qemu itself: the emulated CPU is chosen when the tests run, so one build can
# be tested on several CPUs.
set(CMAKE_CROSSCOMPILING_EMULATOR "${CMAKE_CURRENT_LIST_DIR}/qemu.sh")
