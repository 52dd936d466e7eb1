#include "tools/cli/build_info.h"

#include <unistd.h>

#include "tools/cli/pinned_libraries.h"
#include "tools/cli/terminal.h"
#include "tools/cli/words.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace arn::cli {

std::string CpuInstructions() {
  std::string text;
  const auto add = [&text](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  };
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  add(__builtin_cpu_supports("sse4.2") != 0, "sse4.2");
  add(__builtin_cpu_supports("avx2") != 0, "avx2");
  add(__builtin_cpu_supports("fma") != 0, "fma");
  add(__builtin_cpu_supports("avx512f") != 0, "avx512f");
  add(__builtin_cpu_supports("avx512bw") != 0, "avx512bw");
  add(__builtin_cpu_supports("avx512vnni") != 0, "avx512vnni");
#elif defined(__aarch64__) && defined(__linux__)
  // Bits of the kernel's ABI (asm/hwcap.h), which never change.
  const unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
  add((caps >> 1 & 1) != 0, "neon");
  add((caps >> 10 & 1) != 0, "fp16");
  add((caps >> 20 & 1) != 0, "dotprod");
  add((caps >> 22 & 1) != 0, "sve");
  add((caps2 >> 13 & 1) != 0, "i8mm");
  add((caps2 >> 14 & 1) != 0, "bf16");
#elif defined(__ARM_NEON)
  add(true, "neon");
#elif defined(__riscv)
  add(true, "rv64gc");
#endif
  return text;
}

std::string VersionText(const std::string& program, const std::string& version) {
  std::string text = program + " " + version + "\n";
  text += "build      " ARN_BUILD_TYPE ", " ARN_BUILD_COMPILER ", for " ARN_BUILD_SYSTEM "\n";
  const std::string cpu = CpuInstructions();
  if (!cpu.empty()) text += "CPU        " + cpu + "\n";
  std::string line = "libraries ";
  for (const std::string& part : Wrap(ARN_PINNED_LIBRARIES, Columns(STDOUT_FILENO) - 11)) {
    text += line + " " + part + "\n";
    line = "          ";
  }
  text.pop_back();
  return text;
}

}  // namespace arn::cli
