# Shared by every CMakeLists.txt of the project: two sets of flags and seven functions.
#
#   arn_flags        platform, kernels, runtime, tools: code that runs on devices
#   arn_host_flags   converter and tests: the same warnings, with exceptions enabled
#
#   arn_export_headers(<target> <folder> [PRIVATE] [HEADERS <header>...])
#   arn_flatbuffers_generate(<target> <schema.fbs>)
#   arn_optimise_lightly(<target> [EXCEPT <source>...])
#   arn_optimise_for_size(<target> [<source>...])
#   arn_precompile_headers(<target> <header>...)
#   arn_join_sources(<target> [DEVICE] [EXCEPT <source>...])
#   arn_add_test(<name> SOURCES ... [LINK ...] [LABELS ...] [ARGS ...] [TIMEOUT <s>] [SHARDS <n>])
#   arn_add_script_test(<name> COMMAND ... [LABELS ...] [TIMEOUT <s>])
include_guard(GLOBAL)
include(GoogleTest)

set(arn_warnings -Wall -Wextra -Wshadow -Wdouble-promotion -Wvla -Wswitch-enum)
if(ARENITE_WERROR)
  list(APPEND arn_warnings -Werror)
endif()
if(ARENITE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # At -O1, g++-12 warns falsely that the value of a std::optional is uninitialised.
  list(APPEND arn_warnings -Wno-maybe-uninitialized)
endif()

add_library(arn_host_flags INTERFACE)
target_compile_features(arn_host_flags INTERFACE cxx_std_20)
target_compile_options(arn_host_flags INTERFACE ${arn_warnings} ${arn_hardening_compile}
  -ffp-contract=off  # a*b+c rounds identically everywhere; kernels use MulAdd for a fused operation
  "-fmacro-prefix-map=${arenite_SOURCE_DIR}/=")
target_link_options(arn_host_flags INTERFACE ${arn_hardening_link})
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  target_compile_definitions(arn_host_flags INTERFACE _FILE_OFFSET_BITS=64)  # files larger than 2
                                                                             # GiB
endif()

add_library(arn_flags INTERFACE)
target_link_libraries(arn_flags INTERFACE arn_host_flags)
target_compile_options(arn_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions;-fno-rtti;-fno-threadsafe-statics>
  $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>
  -fvisibility=hidden -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT ARENITE_SANITIZE)
  # Makes inline variables ordinary symbols: unique symbols cannot be made local
  # (toolchains/package), and prevent a library from being unloaded.
  target_compile_options(arn_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
endif()
target_link_options(arn_flags INTERFACE LINKER:--gc-sections)

# arn_export_headers(<target> <folder> [PRIVATE] [HEADERS <header>...])
#
# Lets targets that link <target> write #include "<folder>/header.h", and nothing else. The include
# path is a folder of the build tree with only a symbolic link to <folder> (relative to the top of
# the source tree) or, with HEADERS, links to those headers. The source tree itself is on no include
# path. A layer therefore sees only what it links: an upward include does not compile, and a
# backend's private headers are not visible to the runtime:
#
#   arn_export_headers(arn_platform platform)
#   arn_export_headers(arn_kernels kernels HEADERS ops.h program.h backend.h)
#   arn_export_headers(arn_kernels_cpu kernels/cpu PRIVATE)       # its own sources only
#   arn_export_headers(arn_kernels_cpu kernels/cpu HEADERS cpu_backend.h)
function(arn_export_headers target folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "PRIVATE" "" "HEADERS")
  get_target_property(type ${target} TYPE)
  if(arg_PRIVATE)
    set(visibility PRIVATE)
    set(root "${arenite_BINARY_DIR}/inc/${target}.private")
  else()
    set(visibility PUBLIC)
    set(root "${arenite_BINARY_DIR}/inc/${target}")
  endif()
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(visibility INTERFACE)
  endif()
  if(arg_HEADERS)
    list(TRANSFORM arg_HEADERS PREPEND "${folder}/")
    set(links ${arg_HEADERS})
  else()
    set(links "${folder}")
  endif()
  foreach(link IN LISTS links)
    if(NOT EXISTS "${arenite_SOURCE_DIR}/${link}")
      message(FATAL_ERROR "arn_export_headers(${target}): ${link} does not exist.")
    endif()
    cmake_path(GET link PARENT_PATH parent)
    file(MAKE_DIRECTORY "${root}/${parent}")
    file(CREATE_LINK "${arenite_SOURCE_DIR}/${link}" "${root}/${link}" SYMBOLIC)
  endforeach()
  target_include_directories(${target} ${visibility} "${root}")
endfunction()

# arn_flatbuffers_generate(<target> <schema.fbs>)
#
# Adds an INTERFACE target that provides #include "<folder of the schema>/<schema>_generated.h",
# which has what the schema includes, too. Its tables have static reflection, such as the number of
# fields.
function(arn_flatbuffers_generate target schema)
  cmake_path(ABSOLUTE_PATH schema BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
  cmake_path(RELATIVE_PATH schema BASE_DIRECTORY "${arenite_SOURCE_DIR}" OUTPUT_VARIABLE relative)
  cmake_path(GET relative PARENT_PATH folder)
  cmake_path(GET schema STEM name)
  set(root "${arenite_BINARY_DIR}/gen/${target}")
  set(header "${root}/${folder}/${name}_generated.h")
  set(options --cpp --cpp-std c++17 --cpp-static-reflection --scoped-enums --gen-all)
  file(GLOB schemas CONFIGURE_DEPENDS "${arenite_SOURCE_DIR}/${folder}/*.fbs")
  add_custom_command(OUTPUT "${header}"
    COMMAND arn_dep_flatc ${options} -o "${root}/${folder}" "${schema}"
    DEPENDS ${schemas} arn_dep_flatc
    COMMENT "Generating ${folder}/${name}_generated.h" VERBATIM)
  add_custom_target(${target}_generate DEPENDS "${header}")
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_generate)
  target_include_directories(${target} SYSTEM INTERFACE "${root}")
  target_link_libraries(${target} INTERFACE arn_dep_flatbuffers)
endfunction()

# arn_optimise_lightly(<target> [EXCEPT <source>...])
#
# For code that runs once per program: most of the time of -O2 would go into templates of JSON
# values and command-line options, and half of a sanitizer's -O1. EXCEPT: sources with loops over
# weights or whole files.
function(arn_optimise_lightly target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT")
  if(ARENITE_SANITIZE)
    set(light -O0)
    set(loops -O1)
    if(ARENITE_FUZZ)  # runs it thousands of times a second
      set(light -O1)
    endif()
  else()
    set(light $<$<CONFIG:Release>:-O1>)
    set(loops $<$<CONFIG:Release>:-O2>)
  endif()
  target_compile_options(${target} PRIVATE ${light})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With -O1, g++-12 warns falsely that the value of a std::optional is uninitialised.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  # A precompiled header is valid only at the level that it was compiled with.
  set_source_files_properties(${arg_EXCEPT} PROPERTIES
    COMPILE_OPTIONS "${loops}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# arn_optimise_for_size(<target> [<source>...])
#
# For code of the library that runs once per model or message, whose time does not show beside a
# token's: the whole target, or the sources of the caller's folder that are named.
function(arn_optimise_for_size target)
  if(ARGN)
    if(ARENITE_UNITY_BUILD STREQUAL "ALL" OR ARENITE_SANITIZE)
      return()  # Sources with options of their own are not joined with others.
    endif()
    set_property(SOURCE ${ARGN} TARGET_DIRECTORY ${target} APPEND
      PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release,MinSizeRel>:-Os>)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
  endif()
endfunction()

# arn_precompile_headers(<target> <header>...)
#
# Precompiles third-party headers for a program. They are then no system headers to g++-12, which
# warns falsely of array bounds and overlapping copies inside std::string.
function(arn_precompile_headers target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict
      -Wno-stringop-overflow)
  endif()
endfunction()

# arn_join_sources(<target> [DEVICE] [EXCEPT <source>...])
#
# With ARENITE_UNITY_BUILD, compiles several sources as one, which parses their common headers once.
# DEVICE: only with ARENITE_UNITY_BUILD=ALL and under sanitizers, because the size and speed of what
# runs on devices is measured.
# EXCEPT: sources whose unnamed namespaces declare names that other sources declare, too.
function(arn_join_sources target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "DEVICE" "" "EXCEPT")
  if(NOT ARENITE_UNITY_BUILD STREQUAL "ALL" AND
      (NOT ARENITE_UNITY_BUILD OR (arg_DEVICE AND NOT ARENITE_SANITIZE)))
    return()
  endif()
  set(batch 6)  # with more, each change would recompile too much
  if(ARENITE_UNITY_BUILD STREQUAL "ALL")
    set(batch 12)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  if(arg_EXCEPT)
    set_source_files_properties(${arg_EXCEPT} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Takes a joined source for a header, whose unnamed namespaces would be a mistake.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# Compile options of the sources of all test programs. Most of them run once: optimising them would
# take half of the compile time. Folders of compute-bound tests raise arn_test_level.
set(arn_test_level -O0)
if(ARENITE_FUZZ)
  set(arn_test_level -O1)
endif()
function(arn_test_options target)
  if(ARENITE_SANITIZE)
    target_compile_options(${target} PRIVATE ${arn_test_level})
  elseif(arn_test_level STREQUAL "-O0")  # FORTIFY requires optimisation
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0;-U_FORTIFY_SOURCE>)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${arn_test_level}>)
  endif()
  if("undefined" IN_LIST ARENITE_SANITIZE)
    # Half of the compile time would go into instrumenting code that runs once. The code under test
    # is still instrumented.
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined,float-cast-overflow)
  endif()
endfunction()

# Takes the precompiled header of tests/CMakeLists.txt, which is valid only at the level of
# optimisation that it was compiled with.
function(arn_use_test_headers target)
  if(TARGET arn_gtest_headers${arn_test_level})
    target_link_libraries(${target} PRIVATE arn_test_json)
    target_precompile_headers(${target} REUSE_FROM arn_gtest_headers${arn_test_level})
  endif()
endfunction()

# Everything ThreadSanitizer runs, so that its build can skip the rest.
add_custom_target(arn_thread_tests)
# Tests to run for every additional architecture, and tests that depend on the kernels selected for
# the CPU.
add_custom_target(arn_portable_tests)
add_custom_target(arn_kernel_tests)

# Under an emulator or a sanitizer, starting a program takes longer than most of its cases. And
# counts of branches are merged at the end of each process.
set(arn_whole_programs FALSE)
if(CMAKE_CROSSCOMPILING OR ARENITE_SANITIZE OR ARENITE_COVERAGE)
  set(arn_whole_programs TRUE)
endif()
set(ARENITE_TEST_EXCLUDE "" CACHE STRING
  "Cases that programs run as a whole leave out: patterns of GoogleTest, separated by colons")
set(ARENITE_TEST_SKIP "" CACHE STRING
  "Test programs that are neither built nor run: a regular expression")

# Patterns of the names of tests that get the label `further`.
file(STRINGS "${arenite_SOURCE_DIR}/tests/further.txt" arn_further_tests REGEX "^[^#]")
set_property(DIRECTORY "${arenite_SOURCE_DIR}" APPEND PROPERTY
  CMAKE_CONFIGURE_DEPENDS "${arenite_SOURCE_DIR}/tests/further.txt")

# arn_add_test(<name> SOURCES ... [LINK ...] [LABELS ...] [ARGS ...] [TIMEOUT <s>] [SHARDS <n>]
#              [JOIN])
#
# Adds a GoogleTest program with one ctest test per case. With arn_whole_programs, the program is a
# single test, or SHARDS tests that run in parallel. Cases with Vulkan in their names run on
# lavapipe, if available, with the validation layer; any of its messages fails them. JOIN: calls
# arn_join_sources().
function(arn_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "JOIN" "TIMEOUT;SHARDS"
    "SOURCES;LINK;LABELS;ARGS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE arn_host_flags arn_dep_gtest ${arg_LINK})
  arn_test_options(${name})
  if(arg_JOIN)
    arn_join_sources(${name})
  endif()
  if(NOT arg_SOURCES MATCHES "[.]c(;|$)")  # the precompiled header is C++ only
    arn_use_test_headers(${name})
  endif()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${arenite_BINARY_DIR}/bin/tests")
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(arn_thread_tests ${name})
  endif()
  if((CMAKE_CROSSCOMPILING AND "native-only" IN_LIST arg_LABELS) OR
      (ARENITE_SANITIZE AND "release-only" IN_LIST arg_LABELS) OR
      (ARENITE_TEST_SKIP AND name MATCHES "^(${ARENITE_TEST_SKIP})$"))
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if("portable" IN_LIST arg_LABELS)
    add_dependencies(arn_portable_tests ${name})
  endif()
  if(NOT "any-cpu" IN_LIST arg_LABELS)
    add_dependencies(arn_kernel_tests ${name})
  endif()
  if(arn_whole_programs)
    arn_add_whole_program()
  else()
    arn_add_cases()
  endif()
endfunction()

# Second half of arn_add_test(), in its scope: adds the program as one test, or as two if some of
# its cases need the driver's environment.
macro(arn_add_whole_program)
  set(filters "-${ARENITE_TEST_EXCLUDE}")
  if(arn_vulkan_tests)
    set(filters "-*Vulkan*:${ARENITE_TEST_EXCLUDE}" "*Vulkan*-${ARENITE_TEST_EXCLUDE}")
  endif()
  math(EXPR timeout "10 * ${arg_TIMEOUT}")
  foreach(filter IN LISTS filters)
    set(test_name ${name})
    set(environment "")
    if(filter MATCHES "^[*]Vulkan")
      set(test_name ${name}.vulkan)
      set(environment ${ARENITE_VULKAN_TEST_ENVIRONMENT})
    endif()
    set(filter_argument "--gtest_filter=${filter}")
    if(filter STREQUAL "-")  # leave GTEST_FILTER of the environment in effect
      set(filter_argument "")
    endif()
    foreach(shard RANGE 1 ${arg_SHARDS})
      set(shard_name ${test_name})
      if(arg_SHARDS GREATER 1)
        string(APPEND shard_name ".${shard}")
      endif()
      math(EXPR index "${shard} - 1")
      add_test(NAME ${shard_name} COMMAND ${name} ${filter_argument} ${arg_ARGS})
      set_tests_properties(${shard_name} PROPERTIES
        TIMEOUT ${timeout} COST ${timeout} LABELS "${arg_LABELS}"
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${index};${environment}"
        FAIL_REGULAR_EXPRESSION "${arn_validation_messages}")
    endforeach()
  endforeach()
endmacro()

set(arn_validation_messages "Validation (Error|Warning|Performance)|VUID-|SYNC-HAZARD")

# Second half of arn_add_test(), in its scope: adds each case as a test.
macro(arn_add_cases)
  # COST is the time limit, so that slow tests start first and do not run alone at the end.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
    EXTRA_ARGS ${arg_ARGS} PROPERTIES TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT})
  # Sets the labels in a separate file: gtest_discover_tests() keeps only the first label.
  set(labels "${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake")
  file(CONFIGURE OUTPUT "${labels}" @ONLY CONTENT [[
file(STRINGS "@arenite_SOURCE_DIR@/tests/further.txt" arn_further_tests REGEX "^[^#]")
foreach(test IN LISTS @name@_TESTS)
  set(labels "@arg_LABELS@")
  foreach(pattern IN LISTS arn_further_tests)
    if(test MATCHES "${pattern}")
      list(APPEND labels further)
      break()
    endif()
  endforeach()
  set_tests_properties("${test}" PROPERTIES LABELS "${labels}")
  if(test MATCHES "Vulkan")
    set_tests_properties("${test}" PROPERTIES
      ENVIRONMENT "@ARENITE_VULKAN_TEST_ENVIRONMENT@"
      FAIL_REGULAR_EXPRESSION "@arn_validation_messages@")
  endif()
endforeach()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${labels}")
endmacro()

# arn_add_script_test(<name> COMMAND ... [LABELS ...] [TIMEOUT <s>]): adds a command that exits with
# 0 on success.
function(arn_add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "COMMAND;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  foreach(pattern IN LISTS arn_further_tests)
    if(name MATCHES "${pattern}")
      list(APPEND arg_LABELS further)
    endif()
  endforeach()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
