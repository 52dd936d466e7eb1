#include "backends.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "cases.h"
#include "kernels/contract/code_type.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/reference/backend_reference.h"
#include "program_builder.h"
#ifdef ARENITE_VULKAN
#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/lower/attention_tiles.h"
#include "kernels/vulkan/shaders/shaders.h"
#endif

namespace arn::conformance {

namespace {

// Adds the backend for each instruction set of this machine.
void AddTargets(const Backend* backend, const std::string& name, std::vector<BackendCase>* cases) {
#if HWY_ARCH_X86
  // Without a target it has more than the last where the CPU has VNNI: other int8 kernels.
  const int64_t candidates[] = {HWY_SSE2, HWY_SSE4, HWY_AVX2, HWY_AVX3};
  const int64_t have = hwy::SupportedTargets();
  for (const int64_t target : candidates) {
    if ((have & target) == 0) continue;
    cases->push_back({backend, target, 1, name + hwy::TargetName(target)});
  }
#else
  (void)backend, (void)name, (void)cases;
#endif
}

BackendOptions InRows(BackendOptions options) {
  options.cpu.reads_device_rows = true;
  return options;
}

}  // namespace

const Backend* CpuInRows() {
  static const Backend* const backend = [] {
    auto* made = new Backend(*CpuBackend());
    made->plan = [](const Program& program, const BackendOptions& options, Layout* layout,
                    BackendPlan* plan, Diag* diag) {
      return CpuBackend()->plan(program, InRows(options), layout, plan, diag);
    };
    made->load = [](const Program& program, const BackendOptions& options, const BackendPlan& plan,
                    const Memory& memory, void** state, Diag* diag) {
      return CpuBackend()->load(program, InRows(options), plan, memory, state, diag);
    };
    return made;
  }();
  return backend;
}

std::vector<BackendCase> CpusInRows() {
  std::vector<BackendCase> cases = {{CpuInRows(), 0, 1, "CpuInRows"},
                                    {CpuInRows(), 0, 3, "CpuInRows3Threads"}};
  AddTargets(CpuInRows(), "CpuInRows", &cases);
  return cases;
}

std::vector<BackendCase> AllBackends() {
  std::vector<BackendCase> cases = {{ReferenceBackend(), 0, 1, "Reference"},
                                    {CpuBackend(), 0, 1, "Cpu"},
                                    {CpuBackend(), 0, 3, "Cpu3Threads"}};
  AddTargets(CpuBackend(), "Cpu", &cases);
// AddressSanitizer covers only host code, which the other tests run too, and makes shader
// compilation several times slower.
#if defined(ARENITE_VULKAN) && !defined(ARN_SANITIZE_ADDRESS)
  using vulkan::RestrictedBackend;
  using vulkan::Restriction;
  cases.push_back({VulkanBackend(), 0, 1, "Vulkan"});
  cases.push_back({RestrictedBackend(Restriction::kSharedMemory), 0, 1, "VulkanSharedMemory"});
#endif
  return cases;
}

std::vector<BackendCase> HostBackends() {
  std::vector<BackendCase> cases;
  for (const BackendCase& c : AllBackends()) {
    if (c.backend->host_kv != nullptr) cases.push_back(c);
  }
  return cases;
}

std::vector<BackendCase> AttentionBackends() {
  std::vector<BackendCase> cases = AllBackends();
#if defined(ARENITE_VULKAN) && !defined(ARN_SANITIZE_ADDRESS)
  const Backend* large = vulkan::AttentionBackend(vulkan::kAttentionOfLargeTiles);
  cases.push_back({large, 0, 1, "VulkanLargeTiles"});
#endif
  return cases;
}

std::vector<BackendCase> MatrixBackends() {
  std::vector<BackendCase> cases;
#if defined(ARENITE_VULKAN) && !defined(ARN_SANITIZE_ADDRESS)
  if (!vulkan::SpirvOf(vulkan::Shader::kAttentionCoop, {true, false}).empty()) {
    const Backend* matrices = vulkan::AttentionBackend(vulkan::kAttentionOfMatrices);
    cases.push_back({matrices, 0, 1, "VulkanMatrices"});
  }
#endif
  return cases;
}

std::vector<DType> WeightTypesOf(const BackendCase& backend) {
  std::vector<DType> types(std::begin(kWeightTypes), std::end(kWeightTypes));
  const bool runs_codes = kHasLowBits && backend.backend->host_kv != nullptr;
  std::erase_if(types, [&](DType t) { return FindCodeType(t) != nullptr && !runs_codes; });
  return types;
}

std::vector<BackendCase> BackendsAndStaging() {
  std::vector<BackendCase> cases = AllBackends();
#if defined(ARENITE_VULKAN) && !defined(ARN_SANITIZE_ADDRESS)
  const Backend* staged = vulkan::RestrictedBackend(vulkan::Restriction::kStaged);
  cases.push_back({staged, 0, 1, "VulkanStaged"});
#endif
  return cases;
}

const char* NoDevice(const Backend* backend) {
  if (backend->host_kv != nullptr) return nullptr;
  static const std::string* const problem = [&] {
    ProgramBuilder builder(2, 1, 8);
    Step step{ActParams()};
    step.in = builder.AddValue(1);
    builder.AddStep(step);
    auto* message = new std::string;
    if (!CanLoad(backend, &builder, message)) return message;
    delete message;
    return static_cast<std::string*>(nullptr);
  }();
  return problem == nullptr ? nullptr : problem->c_str();
}

void BackendTest::SetUp() {
  if (const char* problem = NoDevice(GetParam().backend)) GTEST_SKIP() << problem;
  if (GetParam().simd_target != 0) hwy::SetSupportedTargetsForTest(GetParam().simd_target);
}

void BackendTest::TearDown() { hwy::SetSupportedTargetsForTest(0); }

}  // namespace arn::conformance
