#include "kernels/vulkan/pipelines/pipelines.h"

#include <cstring>

#include "platform/os/pages.h"

namespace arn::vulkan {

Status Pipelines::Open(const Device& device, Span<PipelineEntry> entries, Diag* diag) {
  entries_ = entries;
  const Api& api = device.api();
  VkDescriptorSetLayoutBinding bindings[kBindings] = {};
  for (uint32_t i = 0; i < kBindings; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set = {};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = kBindings;
  set.pBindings = bindings;
  ARN_VK(api, CreateDescriptorSetLayout(device.handle(), &set, device.callbacks(), &set_layout_),
         diag);
  const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                    kMaxPushWords * sizeof(uint32_t)};
  VkPipelineLayoutCreateInfo layout = {};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &push;
  ARN_VK(api, CreatePipelineLayout(device.handle(), &layout, device.callbacks(), &layout_), diag);
  return Status::kOk;
}

Status Pipelines::StartFrom(const Device& device, Span<const std::byte> compiled, Diag* diag) {
  const Api& api = device.api();
  VkPipelineCacheCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = compiled.size();
  info.pInitialData = compiled.data();
  if (!compiled.empty() &&
      api.CreatePipelineCache(device.handle(), &info, device.callbacks(), &cache_) == VK_SUCCESS) {
    return Status::kOk;
  }
  info.initialDataSize = 0;
  info.pInitialData = nullptr;
  ARN_VK(api, CreatePipelineCache(device.handle(), &info, device.callbacks(), &cache_), diag);
  return Status::kOk;
}

Span<std::byte> Pipelines::Compiled(const Device& device, size_t* bytes) const {
  *bytes = 0;
  size_t n = 0;
  const Api& api = device.api();
  if (cache_ == VK_NULL_HANDLE ||
      api.GetPipelineCacheData(device.handle(), cache_, &n, nullptr) != VK_SUCCESS || n == 0) {
    return {};
  }
  const Result<Span<std::byte>> pages = ReservePages(n);
  if (!pages.ok()) return {};
  if (api.GetPipelineCacheData(device.handle(), cache_, &n, pages.value().data()) == VK_SUCCESS) {
    *bytes = n;
  }
  return pages.value();
}

Status Pipelines::Make(const Device& device, const Dispatch& dispatch, bool cached, VkPipeline* out,
                       Diag* diag) {
  const Api& api = device.api();
  const ShaderVariant variant = {
      device.uses_subgroups() && (dispatch.avoid & kAvoidSubgroups) == 0,
      device.uses_dot() && (dispatch.avoid & kAvoidDot) == 0,
  };
  VkShaderModule& module = modules_[static_cast<uint32_t>(dispatch.shader)][IndexOf(variant)];
  if (module == VK_NULL_HANDLE) {
    const Span<const uint32_t> words = SpirvOf(dispatch.shader, variant);
    VkShaderModuleCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    info.codeSize = words.size() * sizeof(uint32_t);
    info.pCode = words.data();
    ARN_VK(api, CreateShaderModule(device.handle(), &info, device.callbacks(), &module), diag);
  }
  VkSpecializationMapEntry map[kConstantCount];
  for (uint32_t i = 0; i < kConstantCount; ++i) {
    map[i] = {i, i * static_cast<uint32_t>(sizeof(uint32_t)), sizeof(uint32_t)};
  }
  VkSpecializationInfo constants = {};
  constants.mapEntryCount = kConstantCount;
  constants.pMapEntries = map;
  constants.dataSize = sizeof dispatch.constants;
  constants.pData = dispatch.constants;
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  // Cooperative matrices need a full subgroup. A workgroup with ONE_SUBGROUP, and one with TEAMS,
  // reduces within subgroups only.
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {};
  size.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  size.requiredSubgroupSize = device.subgroup_size();
  const bool is_gemv = dispatch.shader == Shader::kGemvInt || dispatch.shader == Shader::kGemvFloat;
  const bool has_teams = is_gemv && dispatch.constants[kMatmulTeamsId] > 1;
  const bool has_matrices =
      dispatch.shader == Shader::kGemmCoop || dispatch.shader == Shader::kAttentionCoop;
  if (has_matrices || dispatch.constants[kOneSubgroupId] != 0 || has_teams) {
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    if (device.has_sized_subgroups()) info.stage.pNext = &size;
  }
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  info.layout = layout_;
  const VkPipelineCache cache = cached ? cache_ : VK_NULL_HANDLE;
  ARN_VK(api, CreateComputePipelines(device.handle(), cache, 1, &info, device.callbacks(), out),
         diag);
  return Status::kOk;
}

Status Pipelines::Find(const Device& device, const Dispatch& dispatch, VkPipeline* out,
                       Diag* diag) {
  for (uint32_t i = 0; i < n_; ++i) {
    const PipelineEntry& e = entries_[i];
    if (e.shader == dispatch.shader && e.avoid == dispatch.avoid &&
        std::memcmp(e.constants, dispatch.constants, sizeof e.constants) == 0) {
      *out = e.pipeline;
      return Status::kOk;
    }
  }
  if (n_ == entries_.size())
    return diag->Fail(Status::kInternal, "Vulkan: more pipelines than planned");
  PipelineEntry& entry = entries_[n_];
  ARN_TRY(Make(device, dispatch, true, &entry.pipeline, diag));
  entry.shader = dispatch.shader;
  entry.avoid = dispatch.avoid;
  std::memcpy(entry.constants, dispatch.constants, sizeof entry.constants);
  ++n_;
  *out = entry.pipeline;
  return Status::kOk;
}

void Pipelines::DropModules(const Device& device) {
  const Api& api = device.api();
  for (auto& variants : modules_) {
    for (VkShaderModule& module : variants) {
      if (module != VK_NULL_HANDLE) {
        api.DestroyShaderModule(device.handle(), module, device.callbacks());
      }
      module = VK_NULL_HANDLE;
    }
  }
}

void Pipelines::Close(const Device& device) {
  const Api& api = device.api();
  for (uint32_t i = 0; i < n_; ++i) {
    api.DestroyPipeline(device.handle(), entries_[i].pipeline, device.callbacks());
  }
  n_ = 0;
  DropModules(device);
  if (cache_ != VK_NULL_HANDLE) {
    api.DestroyPipelineCache(device.handle(), cache_, device.callbacks());
  }
  cache_ = VK_NULL_HANDLE;
  if (layout_ != VK_NULL_HANDLE) {
    api.DestroyPipelineLayout(device.handle(), layout_, device.callbacks());
  }
  if (set_layout_ != VK_NULL_HANDLE) {
    api.DestroyDescriptorSetLayout(device.handle(), set_layout_, device.callbacks());
  }
  layout_ = VK_NULL_HANDLE;
  set_layout_ = VK_NULL_HANDLE;
}

}  // namespace arn::vulkan
