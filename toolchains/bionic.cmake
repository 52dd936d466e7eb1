# Android without an NDK, for toolchains/android_check.sh: objects and archives by this machine's
# clang against a checkout of bionic. Nothing can be linked: there is no libc++ for Android here.
#   BIONIC_DIR    bionic's folder, with libc/include
#   ARN_LIBCXX    a folder with libc++'s headers
#   ARN_TARGET    aarch64-linux-android24, armv7a-linux-androideabi24
set(CMAKE_SYSTEM_NAME Android)
set(CMAKE_SYSTEM_VERSION 1)  # leaves CMake's own search for an NDK out
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES BIONIC_DIR ARN_LIBCXX ARN_TARGET ARN_SHIM)

foreach(language C CXX ASM)
  set(CMAKE_${language}_COMPILER clang-14)
  set(CMAKE_${language}_COMPILER_TARGET ${ARN_TARGET})
endforeach()
set(CMAKE_CXX_COMPILER clang++-14)
if(ARN_TARGET MATCHES "^aarch64")
  set(CMAKE_SYSTEM_PROCESSOR aarch64)
  set(arn_kernel_headers asm-arm64)
  set(arn_flags "-mno-outline-atomics")
else()
  set(CMAKE_SYSTEM_PROCESSOR armv7-a)
  set(arn_kernel_headers asm-arm)
  set(arn_flags "-mfpu=neon-vfpv4 -mfloat-abi=softfp")
endif()
foreach(folder libc/include libc/kernel/uapi/${arn_kernel_headers} libc/kernel/uapi
    libc/kernel/android/uapi)
  string(APPEND arn_flags " -isystem ${BIONIC_DIR}/${folder}")
endforeach()
set(CMAKE_C_FLAGS_INIT "-nostdlibinc ${arn_flags}")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
# libc++'s headers ask the NDK for its version.
set(CMAKE_CXX_FLAGS_INIT
  "-nostdlibinc -nostdinc++ -isystem ${ARN_LIBCXX} -isystem ${ARN_SHIM} ${arn_flags}")
set(CMAKE_FIND_ROOT_PATH "${BIONIC_DIR}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
