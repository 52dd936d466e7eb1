# Android 7 (API 24) and later, built with the NDK in ANDROID_NDK_HOME. The preset sets ANDROID_ABI.
if(NOT EXISTS "$ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake")
  message(FATAL_ERROR "ANDROID_NDK_HOME ('$ENV{ANDROID_NDK_HOME}') is not the folder of an Android "
    "NDK: build/cmake/android.toolchain.cmake is not in it. Without an NDK, "
    "toolchains/android_check.sh compiles the sources against bionic's headers.")
endif()
set(ANDROID_PLATFORM android-24)
set(ANDROID_STL c++_static)  # linked into libarenite.so, so apps need no libc++_shared.so
set(ANDROID_SUPPORT_FLEXIBLE_PAGE_SIZES ON)  # -z max-page-size=16384 for everything linked
include("$ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake")
# Programs (flatc, glslc) come from the host.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
