// Compute pipelines of a session: one per combination of shader and constants that the program
// uses.
#pragma once

#include <cstdint>

#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/dispatch.h"
#include "platform/base/span.h"

namespace arn::vulkan {

class Pipelines {
 public:
  // `entries`: room for all distinct pipelines.
  Status Open(const Device& device, Span<struct PipelineEntry> entries, Diag* diag);
  // Loads a pipeline cache, which the driver may reject. Call before the first Find(). Required for
  // Compiled().
  Status StartFrom(const Device& device, Span<const std::byte> compiled, Diag* diag);
  // Returns the pipeline cache for a later StartFrom(). The pages belong to the caller
  // (ReleasePages); empty if there is no data. `bytes` receives the size of the data.
  Span<std::byte> Compiled(const Device& device, size_t* bytes) const;
  void Close(const Device& device);

  // Returns the pipeline of a dispatch; creates it on first use.
  Status Find(const Device& device, const Dispatch& dispatch, VkPipeline* out, Diag* diag);

  // Creates a pipeline that the caller destroys. cached: adds it to the pipeline cache.
  Status Make(const Device& device, const Dispatch& dispatch, bool cached, VkPipeline* out,
              Diag* diag);

  // Releases the shader modules until the next pipeline is created.
  void DropModules(const Device& device);

  VkDescriptorSetLayout set_layout() const { return set_layout_; }
  VkPipelineLayout layout() const { return layout_; }
  uint32_t size() const { return n_; }

 private:
  Span<PipelineEntry> entries_;
  uint32_t n_ = 0;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkShaderModule modules_[kShaderCount][kShaderVariants] = {};
  VkPipelineCache cache_ = VK_NULL_HANDLE;
};

struct PipelineEntry {
  Shader shader = Shader::kEmbed;
  uint32_t avoid = 0;
  uint32_t constants[kConstantCount] = {};
  VkPipeline pipeline = VK_NULL_HANDLE;
};

}  // namespace arn::vulkan
