# Android without an NDK, for toolchains/android_check.sh: compiles objects and archives with the
# host's clang against a checkout of bionic. Cannot link: there is no libc++ for Android.
#   BIONIC_DIR    bionic's folder, with libc/include
#   ARN_LIBCXX    folder of libc++'s headers
#   ARN_TARGET    aarch64-linux-android24, armv7a-linux-androideabi24
#   ARN_SHIM      folder of headers an NDK adds: android/ndk-version.h, android/log.h
set(CMAKE_SYSTEM_NAME Android)
set(CMAKE_SYSTEM_VERSION 1)  # disables CMake's own search for an NDK
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
string(APPEND arn_flags " -isystem ${ARN_SHIM}")
set(CMAKE_C_FLAGS_INIT "-nostdlibinc ${arn_flags}")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
# libc++'s headers include the NDK version header.
set(CMAKE_CXX_FLAGS_INIT
  "-nostdlibinc -nostdinc++ -isystem ${ARN_LIBCXX} ${arn_flags}")
set(CMAKE_FIND_ROOT_PATH "${BIONIC_DIR}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
