# Hardening flags for our code and for third-party code: they make memory errors harder to exploit.
# Correctness does not rely on them: the library must read untrusted files without memory errors.
#
#   ARENITE_HARDENING      OFF leaves out the compiled-in measures, for the smallest library
#   arn_hardening_compile  compiler options: stack canaries, size checks in libc functions, landing
#                          pads for indirect calls (CET on x86; BTI and signed return addresses on
#                          64-bit ARM)
#   arn_hardening_link     linker options: tables that are read-only once the program runs
include_guard(GLOBAL)
include(CheckCompilerFlag)
option(ARENITE_HARDENING "Stack canaries, checked sizes in libc's functions, landing pads" ON)

set(arn_hardening_compile "")
set(arn_hardening_link LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
# Sanitizers detect more, and intercept the functions that FORTIFY replaces.
if(ARENITE_HARDENING AND NOT ARENITE_SANITIZE)
  # Selected by architecture: Clang reports flags of another architecture only in a real
  # compilation.
  set(options -fstack-protector-strong)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i.86)$")
    list(APPEND options -fcf-protection=full)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    list(APPEND options -mbranch-protection=standard)
  endif()
  foreach(option IN LISTS options)
    string(MAKE_C_IDENTIFIER "arn_has${option}" has)
    check_compiler_flag(C "${option}" ${has})
    if(${has})
      list(APPEND arn_hardening_compile "${option}")
    endif()
  endforeach()
  # FORTIFY requires optimisation; some compilers predefine a level.
  set(optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
  list(APPEND arn_hardening_compile
    "$<${optimised}:-U_FORTIFY_SOURCE>" "$<${optimised}:-D_FORTIFY_SOURCE=2>")
endif()
# Position-independent programs, also with compilers that do not default to PIE.
include(CheckPIESupported)
check_pie_supported()
