# Licence files that must be shipped with the library and the programs.
#
#   arn_write_notices(<folder>)
#                     writes to <folder>, from deps.lock, licences.txt, tables.txt and the sources
#                     in ARENITE_DEPS_DIR:
#                       LICENSE                  Arenite's licence
#                       THIRD_PARTY_NOTICES.txt  texts of the third-party licences
#                       arenite.spdx.json        software bill of materials, SPDX 2.3
#                     fails if a line of deps.lock has no licence, or a licence's text is missing
#
# Without a build: cmake -DOUT=<folder> -P toolchains/notices.cmake
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/unpack.cmake")
set(arn_notices_here "${CMAKE_CURRENT_LIST_DIR}")

# arn_read_table(<file> <separator> <out>): reads all lines that are neither empty nor comments.
# Sets <out>_1 to <out>_N, each a list of stripped fields, and <out> to N.
function(arn_read_table file separator out)
  file(STRINGS "${file}" lines REGEX "^[^#]")
  set(n 0)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE " *${separator} *" ";" fields "${line}")
    list(TRANSFORM fields STRIP)
    math(EXPR n "${n} + 1")
    set(${out}_${n} "${fields}" PARENT_SCOPE)
  endforeach()
  set(${out} ${n} PARENT_SCOPE)
endfunction()

# Writes the file only if it changes, so that its dependents are not rebuilt.
function(arn_write_if_different file text)
  set(there "")
  if(EXISTS "${file}")
    file(READ "${file}" there)
  endif()
  if(NOT there STREQUAL text)
    file(WRITE "${file}" "${text}")
  endif()
endfunction()

# Formats one package of the bill of materials.
function(arn_spdx_package out name version licence location more)
  set(${out} "    {
      \"SPDXID\": \"SPDXRef-${name}\",
      \"name\": \"${name}\",
      \"versionInfo\": \"${version}\",
      \"downloadLocation\": \"${location}\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"${licence}\",
      \"licenseDeclared\": \"${licence}\",
      \"copyrightText\": \"NOASSERTION\"${more}
    }" PARENT_SCOPE)
endfunction()

function(arn_write_notices out)
  set(lock "${arn_notices_here}/deps.lock")
  set(licences "${arn_notices_here}/licences.txt")
  set(tables "${arn_notices_here}/tables.txt")
  if(NOT CMAKE_SCRIPT_MODE_FILE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
      "${lock}" "${licences}" "${tables}")
  endif()
  arn_read_table("${licences}" "[|]" licence)
  foreach(i RANGE 1 ${licence})
    list(GET licence_${i} 0 name)
    list(SUBLIST licence_${i} 1 -1 licence_of_${name})
  endforeach()
  file(STRINGS "${arn_notices_here}/../CMakeLists.txt" line REGEX "^project\\(arenite ")
  string(REGEX MATCH "VERSION ([0-9.]+)" line "${line}")
  set(version "${CMAKE_MATCH_1}")

  set(rule "--------------------------------------------------------------------------------")
  set(notices "Arenite ${version} is under the Apache License 2.0 (LICENSE). The library and the
programs have parts of other projects in them, under the licences below.\n")
  arn_spdx_package(packages arenite "${version}" Apache-2.0 NOASSERTION "")
  set(relations "    {
      \"spdxElementId\": \"SPDXRef-DOCUMENT\",
      \"relationshipType\": \"DESCRIBES\",
      \"relatedSpdxElement\": \"SPDXRef-arenite\"
    }")
  arn_read_table("${lock}" " +" dep)
  foreach(i RANGE 1 ${dep})
    list(POP_FRONT dep_${i} name pin sha256 package archive repository ref)
    if(NOT DEFINED licence_of_${name})
      message(FATAL_ERROR "${licences}: no line for ${name} of deps.lock.")
    endif()
    list(POP_FRONT licence_of_${name} spdx place)
    if(NOT place MATCHES "^(library|programs|tests)$" OR NOT licence_of_${name})
      message(FATAL_ERROR "${licences}: the line of ${name} must say library, programs or tests, "
        "and name a file; it says '${place}' and '${licence_of_${name}}'.")
    endif()
    if(place STREQUAL "tests")
      set(from "${name}")
      set(relation TEST_DEPENDENCY_OF)
      set(to arenite)
    else()
      set(from arenite)
      set(relation STATIC_LINK)
      set(to "${name}")
      string(APPEND notices "\n${rule}\n${name} ${pin}, in the ${place}: ${spdx}\n"
        "${repository}\n${rule}\n\n")
    endif()
    string(REPLACE " " ";" files "${licence_of_${name}}")
    foreach(file IN LISTS files)
      set(path "${ARENITE_DEPS_DIR}/${name}/${file}")
      if(NOT EXISTS "${path}")
        message(FATAL_ERROR "${path}, the licence of ${name}, is missing: run "
          "toolchains/get_deps.sh, or correct ${licences}.")
      endif()
      if(NOT place STREQUAL "tests")
        file(READ "${path}" text)
        string(STRIP "${text}" text)
        string(APPEND notices "${text}\n")
      endif()
    endforeach()
    string(REGEX REPLACE "^https://github.com/" "pkg:github/" purl "${repository}")
    string(TOLOWER "${purl}" purl)
    arn_spdx_package(one "${name}" "${pin}" "${spdx}" "git+${repository}@${ref}" ",
      \"sourceInfo\": \"${archive} of Debian's source package ${package}\",
      \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"${sha256}\"}],
      \"externalRefs\": [{
        \"referenceCategory\": \"PACKAGE-MANAGER\",
        \"referenceType\": \"purl\",
        \"referenceLocator\": \"${purl}@${ref}\"
      }]")
    string(APPEND packages ",\n${one}")
    string(APPEND relations ",\n    {
      \"spdxElementId\": \"SPDXRef-${from}\",
      \"relationshipType\": \"${relation}\",
      \"relatedSpdxElement\": \"SPDXRef-${to}\"
    }")
  endforeach()

  arn_read_table("${tables}" "[|]" table)
  foreach(i RANGE 1 ${table})
    list(POP_FRONT table_${i} name pin spdx place repository ref file what)
    set(path "${arn_notices_here}/${file}")
    if(NOT what OR NOT EXISTS "${path}")
      message(FATAL_ERROR "${tables}: the line of ${name} needs eight fields and a file with the "
        "licence's text; there is no ${path}.")
    endif()
    file(READ "${path}" text)
    string(STRIP "${text}" text)
    string(APPEND notices "\n${rule}\n${name} ${pin}, in the ${place}: ${spdx}\n"
      "${repository}\nOnly ${what}\n${rule}\n\n${text}\n")
    string(REGEX REPLACE "^https://github.com/" "pkg:github/" purl "${repository}")
    arn_spdx_package(one "${name}" "${pin}" "${spdx}" "git+${repository}@${ref}" ",
      \"comment\": \"Only ${what}\",
      \"externalRefs\": [{
        \"referenceCategory\": \"PACKAGE-MANAGER\",
        \"referenceType\": \"purl\",
        \"referenceLocator\": \"${purl}@${ref}\"
      }]")
    string(APPEND packages ",\n${one}")
    string(APPEND relations ",\n    {
      \"spdxElementId\": \"SPDXRef-arenite\",
      \"relationshipType\": \"CONTAINS\",
      \"relatedSpdxElement\": \"SPDXRef-${name}\"
    }")
  endforeach()

  # Reproducible: the identifier is a hash of the contents, and the build time is not recorded.
  string(UUID id NAMESPACE 6ba7b812-9dad-11d1-80b4-00c04fd430c8 NAME "${packages}" TYPE SHA1)
  set(created "1980-01-01T00:00:00Z")
  if(DEFINED ENV{SOURCE_DATE_EPOCH})
    string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC)
  endif()
  set(bill "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"arenite-${version}\",
  \"documentNamespace\": \"urn:uuid:${id}\",
  \"creationInfo\": {
    \"created\": \"${created}\",
    \"creators\": [\"Tool: arenite-toolchains/notices.cmake\"],
    \"comment\": \"The time is SOURCE_DATE_EPOCH, or the beginning of 1980 where that is not set.\"
  },
  \"packages\": [
${packages}
  ],
  \"relationships\": [
${relations}
  ]
}\n")
  arn_write_if_different("${out}/THIRD_PARTY_NOTICES.txt" "${notices}")
  arn_write_if_different("${out}/arenite.spdx.json" "${bill}")
  file(COPY "${arn_notices_here}/../LICENSE" DESTINATION "${out}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  if(NOT OUT)
    message(FATAL_ERROR "usage: cmake -DOUT=<folder> -P toolchains/notices.cmake")
  endif()
  if(NOT ARENITE_DEPS_DIR)
    set(ARENITE_DEPS_DIR "${arn_notices_here}/../.deps")
  endif()
  arn_unpack_dependencies()
  arn_write_notices("${OUT}")
endif()
