// How this program was built and what it runs on.
#pragma once

#include <string>

namespace arn::cli {

// Returns "PROGRAM 0.1.0" and lines with the compiler, the build type, the CPU's vector
// instructions, and the pinned libraries.
std::string VersionText(const std::string& program, const std::string& version);

// Returns the vector instructions of this CPU that the kernels have code for: "avx2 fma vnni"; ""
// if unknown.
std::string CpuInstructions();

}  // namespace arn::cli
