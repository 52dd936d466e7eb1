# Build dependencies of the Vulkan backend: the pinned headers, and the tools unpacked by
# get_deps.sh or installed on the host.
#
#   ARENITE_VULKAN        ON if the backend is built
#   arn_dep_vulkan        Vulkan's headers; nothing is linked
#   arn_embed_shaders(<target> FOLDER <folder> SHADERS <name>... DOT <name>... COOP <name>...
#                     PLAIN <name>... INCLUDES <file>...)
#                         compiles the variants of <folder>/<name>.comp and provides their SPIR-V to
#                         the target as "<folder of the target>/embedded_shaders.inc". COOP shaders
#                         are compiled with subgroups only, and not at all if glslc does not support
#                         cooperative matrices. PLAIN shaders use no subgroups
#   ARENITE_VULKAN_TEST_ENVIRONMENT
#                         environment in which tests find lavapipe and the validation layer
include_guard(GLOBAL)

set(tools "${ARENITE_DEPS_DIR}/vulkan-tools/usr")
file(GLOB tool_libraries "${tools}/lib/*-linux-gnu*")
find_program(ARENITE_GLSLC glslc HINTS "${tools}/bin" NO_CMAKE_FIND_ROOT_PATH)
find_program(ARENITE_SPIRV_VAL spirv-val HINTS "${tools}/bin" NO_CMAKE_FIND_ROOT_PATH)
set(arn_has_vulkan OFF)
if(ARENITE_GLSLC AND ARENITE_SPIRV_VAL)
  set(arn_has_vulkan ON)
endif()
option(ARENITE_VULKAN "Build the Vulkan backend" ${arn_has_vulkan})
if(ARENITE_VULKAN AND NOT arn_has_vulkan)
  message(FATAL_ERROR "ARENITE_VULKAN needs glslc and spirv-val: run "
    "toolchains/get_deps.sh, or configure with -DARENITE_VULKAN=OFF.")
elseif(NOT ARENITE_VULKAN)
  message(STATUS "Vulkan: the backend is left out (glslc: ${ARENITE_GLSLC})")
  return()
endif()
message(STATUS "Vulkan: shaders are compiled by ${ARENITE_GLSLC}")

add_library(arn_dep_vulkan INTERFACE)
target_include_directories(arn_dep_vulkan SYSTEM INTERFACE
  "${ARENITE_DEPS_DIR}/vulkan-headers/include")

# The libraries of the unpacked tools are in the same folder tree.
set(arn_tool_environment "${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${tool_libraries}")

# Probes again if another glslc is configured.
if(NOT arn_coop_asked STREQUAL ARENITE_GLSLC)
  set(probe "${arenite_BINARY_DIR}/probe_coop")
  file(WRITE "${probe}.comp"
    "#version 450\n#extension GL_KHR_cooperative_matrix : require\nvoid main() {}\n")
  execute_process(COMMAND ${arn_tool_environment} "${ARENITE_GLSLC}" --target-env=vulkan1.1
    -o "${probe}.spv" "${probe}.comp" RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(has_coop ON)
  else()
    set(has_coop OFF)
  endif()
  set(arn_coop_asked "${ARENITE_GLSLC}" CACHE INTERNAL "The glslc that arn_has_coop is about")
  set(arn_has_coop "${has_coop}" CACHE INTERNAL "Whether glslc knows GL_KHR_cooperative_matrix")
endif()
if(NOT arn_has_coop)
  message(STATUS "Vulkan: cooperative matrices are left out: this glslc does not support "
    "GL_KHR_cooperative_matrix")
endif()

function(arn_embed_shaders target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER" "SHADERS;DOT;COOP;PLAIN;INCLUDES")
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${arenite_SOURCE_DIR}"
    OUTPUT_VARIABLE folder)
  set(root "${arenite_BINARY_DIR}/gen/${target}")
  set(out "${root}/${folder}/${arg_FOLDER}")
  file(MAKE_DIRECTORY "${out}")
  list(TRANSFORM arg_INCLUDES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/${arg_FOLDER}/")
  set(text "// Made by arn_embed_shaders() of toolchains/vulkan.cmake.\n#include <cstdint>\n")
  set(table "")
  set(made "")
  foreach(shader IN LISTS arg_SHADERS)
    set(row "")
    foreach(variant plain subgroup plain_dot subgroup_dot)
      if(shader IN_LIST arg_COOP AND NOT (arn_has_coop AND variant STREQUAL "subgroup"))
        string(APPEND row "    {nullptr, 0},\n")
        continue()
      endif()
      if(shader IN_LIST arg_PLAIN AND variant MATCHES "subgroup")
        string(REPLACE "subgroup" "plain" same "${variant}")
        if(NOT shader IN_LIST arg_DOT)
          set(same plain)
        endif()
        string(APPEND row "    {k_${shader}_${same}, sizeof k_${shader}_${same} / 4},\n")
        continue()
      endif()
      if(variant MATCHES "dot" AND NOT shader IN_LIST arg_DOT)
        string(REPLACE "_dot" "" same "${variant}")
        string(APPEND row "    {k_${shader}_${same}, sizeof k_${shader}_${same} / 4},\n")
        continue()
      endif()
      set(defines "")
      if(variant MATCHES "subgroup")
        list(APPEND defines -DARN_SUBGROUP)
      endif()
      if(variant MATCHES "dot")
        list(APPEND defines -DARN_DOT)
      endif()
      set(source "${CMAKE_CURRENT_SOURCE_DIR}/${arg_FOLDER}/${shader}.comp")
      set(base "${out}/${shader}.${variant}")
      add_custom_command(OUTPUT "${base}.inc"
        COMMAND ${arn_tool_environment} "${ARENITE_GLSLC}" --target-env=vulkan1.1 -O -Werror
          ${defines} -o "${base}.spv" "${source}"
        COMMAND ${arn_tool_environment} "${ARENITE_SPIRV_VAL}" --target-env vulkan1.1 "${base}.spv"
        COMMAND ${arn_tool_environment} "${ARENITE_GLSLC}" --target-env=vulkan1.1 -O -Werror
          ${defines} -mfmt=num -o "${base}.inc" "${source}"
        DEPENDS "${source}" ${arg_INCLUDES} VERBATIM
        COMMENT "Compiling ${shader}.comp (${variant})")
      list(APPEND made "${base}.inc")
      string(APPEND text "static constexpr uint32_t k_${shader}_${variant}[] = {\n"
        "#include \"${shader}.${variant}.inc\"\n};\n")
      string(APPEND row "    {k_${shader}_${variant}, sizeof k_${shader}_${variant} / 4},\n")
    endforeach()
    string(APPEND table "  {\n${row}  },\n")
  endforeach()
  string(APPEND text "static constexpr EmbeddedSpirv kSpirv[][4] = {\n${table}};\n")
  file(CONFIGURE OUTPUT "${out}/embedded_shaders.inc" CONTENT "${text}" @ONLY)
  target_include_directories(${target} PRIVATE "${root}")
  add_custom_target(${target}_spirv DEPENDS ${made})
  add_dependencies(${target} ${target}_spirv)
  set_source_files_properties(${arg_FOLDER}/shaders.cc PROPERTIES OBJECT_DEPENDS "${made}")
endfunction()

# ThreadSanitizer reports false races in drivers it did not compile, and there is no driver under
# emulation.
set(arn_vulkan_tests ${ARENITE_VULKAN})
if(CMAKE_CROSSCOMPILING OR "thread" IN_LIST ARENITE_SANITIZE)
  set(arn_vulkan_tests OFF)
endif()
# Tests select the driver explicitly, so that they behave identically on a machine with a GPU.
file(GLOB driver "${tools}/share/vulkan/icd.d/lvp_icd.*.json"
  "/usr/share/vulkan/icd.d/lvp_icd.*.json")
if(driver)
  list(GET driver 0 driver)
  list(APPEND ARENITE_VULKAN_TEST_ENVIRONMENT "VK_ICD_FILENAMES=${driver}")
endif()
if(tool_libraries)
  list(APPEND ARENITE_VULKAN_TEST_ENVIRONMENT "LD_LIBRARY_PATH=${tool_libraries}"
    "VK_LAYER_PATH=${tools}/share/vulkan/explicit_layer.d")
endif()
if(NOT ARENITE_SANITIZE)
  # Under a sanitizer it takes half of the time, for calls that the release build's tests validate.
  list(APPEND ARENITE_VULKAN_TEST_ENVIRONMENT "VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation"
    "VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT")
endif()
list(APPEND ARENITE_VULKAN_TEST_ENVIRONMENT
  # Lavapipe compiles each shader once for all test programs and all build folders: two thirds of a
  # test's time otherwise.
  "MESA_SHADER_CACHE_DIR=${arenite_SOURCE_DIR}/build/mesa_shader_cache")
if("address" IN_LIST ARENITE_SANITIZE)
  # Lavapipe leaks its compiled shaders. kernels_vulkan_test checks the library itself for leaks.
  list(APPEND ARENITE_VULKAN_TEST_ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1:detect_stack_use_after_return=1")
endif()
