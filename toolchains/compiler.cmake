# Included before project(): chooses the compiler of a native build, and its build type.
#
# CC and CXX, a toolchain file and -DCMAKE_CXX_COMPILER decide. Without any of them GCC 12, with
# which the project is tested, is taken if it is installed, else CMake's default.
#
#   arn_check_compiler()   after project(): fails if the compiler is too old
if(NOT DEFINED ENV{CC} AND NOT DEFINED ENV{CXX} AND NOT DEFINED CMAKE_TOOLCHAIN_FILE
    AND NOT DEFINED ENV{CMAKE_TOOLCHAIN_FILE} AND NOT DEFINED CMAKE_C_COMPILER
    AND NOT DEFINED CMAKE_CXX_COMPILER)
  find_program(arn_gcc gcc-12)
  find_program(arn_gxx g++-12)
  if(arn_gcc AND arn_gxx)
    set(CMAKE_C_COMPILER gcc-12)
    set(CMAKE_CXX_COMPILER g++-12)
  endif()
  unset(arn_gcc CACHE)
  unset(arn_gxx CACHE)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

function(arn_check_compiler)
  foreach(pair "GNU 12 g++" "Clang 14 clang++")
    separate_arguments(field UNIX_COMMAND "${pair}")
    list(GET field 0 id)
    list(GET field 1 least)
    list(GET field 2 command)
    if(CMAKE_CXX_COMPILER_ID STREQUAL id AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS least)
      message(FATAL_ERROR "${CMAKE_CXX_COMPILER} is ${id} ${CMAKE_CXX_COMPILER_VERSION}; Arenite "
        "needs ${id} ${least} or later: remove the build folder and configure with "
        "CC and CXX=${command}-${least} (or a later one) in the environment.")
    endif()
  endforeach()
endfunction()
