# Android 7 (API 24) and later, by the NDK that ANDROID_NDK_HOME names. The preset sets ANDROID_ABI.
if(NOT EXISTS "$ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake")
  message(FATAL_ERROR "ANDROID_NDK_HOME ('$ENV{ANDROID_NDK_HOME}') is not the folder of an Android "
    "NDK: build/cmake/android.toolchain.cmake is not in it. Without an NDK, "
    "toolchains/android_check.sh compiles the sources against bionic's headers.")
endif()
set(ANDROID_PLATFORM android-24)
set(ANDROID_STL c++_static)  # inside libarenite.so: an app need not ship a libc++_shared.so for it
set(ANDROID_SUPPORT_FLEXIBLE_PAGE_SIZES ON)  # -z max-page-size=16384, whatever is linked
include("$ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake")
# Programs (flatc, glslc) are this machine's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
