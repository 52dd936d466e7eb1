# Packages that cpack makes in a build tree, from what is built there:
#
#   arenite-VERSION-SYSTEM-MACHINE.tar.gz   all that `cmake --install` installs, to unpack anywhere
#   libarenite0_*.deb                       the shared library
#   libarenite-dev_*.deb                    headers, archive, files for CMake and pkg-config
#   arenite_*.deb                           the two programs, manual pages, completions, a unit
#   python3-arenite_*.deb                   the Python package, without a library of its own
#   libarenite-java_*.deb                   arenite.jar and its native library, if there is a JDK
#
# Each has our licence, those of third-party components and the bill of materials.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME arenite)
set(CPACK_PACKAGE_VENDOR "The Arenite authors")
set(CPACK_PACKAGE_CONTACT "The Arenite authors <arenite@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_FILE_NAME
  "arenite-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_RESOURCE_FILE_LICENSE "${arenite_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)

include(GNUInstallDirs)
set(copyright "${arenite_BINARY_DIR}/toolchains/package/copyright")
file(READ "${ARENITE_NOTICES}/LICENSE" licence)
file(READ "${ARENITE_NOTICES}/THIRD_PARTY_NOTICES.txt" third_party)
file(WRITE "${copyright}" "${licence}\n${third_party}")

find_program(ARENITE_SHLIBDEPS dpkg-shlibdeps)
set(needs "libc6 (>= 2.34), libstdc++6 (>= 11), libgcc-s1")  # without dpkg-shlibdeps

# arn_deb(<component> <package> <section> <description> [NATIVE] [DEPENDS <package>...]): one .deb.
# NATIVE: it has machine code.
function(arn_deb component package section description)
  cmake_parse_arguments(PARSE_ARGV 4 arg "NATIVE" "" "DEPENDS")
  string(TOUPPER "${component}" upper)
  set(key "CPACK_DEBIAN_${upper}_PACKAGE")
  set(${key}_NAME "${package}" PARENT_SCOPE)
  set(${key}_SECTION "${section}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description}" PARENT_SCOPE)
  if(NOT arg_NATIVE)
    set(${key}_ARCHITECTURE all PARENT_SCOPE)
  elseif(ARENITE_SHLIBDEPS)
    set(${key}_SHLIBDEPS ON PARENT_SCOPE)
  else()
    list(PREPEND arg_DEPENDS "${needs}")
  endif()
  list(JOIN arg_DEPENDS ", " depends)
  set(${key}_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  install(FILES "${copyright}" "${ARENITE_NOTICES}/arenite.spdx.json"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}" COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

set(CPACK_COMPONENTS_ALL "")
set(library_package "libarenite${PROJECT_VERSION_MAJOR}")
set(library_of_this_version "${library_package} (= ${PROJECT_VERSION})")
arn_deb(library "${library_package}" libs "Shared library, with the C API" NATIVE)
arn_deb(dev libarenite-dev libdevel "Headers and archive for programs that use the library"
  DEPENDS "${library_of_this_version}")
set(CPACK_DEBIAN_DEV_PACKAGE_ARCHITECTURE "")  # has the archive: this machine's
if(TARGET arenite_tool)
  arn_deb(tools arenite utils "Programs: run bundles, and make them from checkpoints" NATIVE)
endif()

file(GLOB python CONFIGURE_DEPENDS "${arenite_SOURCE_DIR}/bindings/python/arenite/*.py"
  "${arenite_SOURCE_DIR}/bindings/python/arenite/py.typed")
install(FILES ${python} DESTINATION lib/python3/dist-packages/arenite COMPONENT python
  EXCLUDE_FROM_ALL)
arn_deb(python python3-arenite python "Python package"
  DEPENDS "python3 (>= 3.9)" "libarenite${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/python/prerm")

if(TARGET arenite_jar)
  install(FILES "${ARENITE_JAR}" DESTINATION "${CMAKE_INSTALL_DATADIR}/java" COMPONENT java
    EXCLUDE_FROM_ALL)
  install(TARGETS arenite_jni LIBRARY DESTINATION lib/jni COMPONENT java EXCLUDE_FROM_ALL)
  arn_deb(java libarenite-java java "Java classes and their native library" NATIVE)
endif()

# The wheel is for other systems; the archive has it beside everything else.
if(TARGET arenite_wheel)
  install(DIRECTORY "${arenite_BINARY_DIR}/python/" DESTINATION "${CMAKE_INSTALL_DATADIR}/arenite"
    COMPONENT wheel FILES_MATCHING PATTERN "*.whl")
endif()

include(CPack)
