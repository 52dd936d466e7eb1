// The compute pipelines of a session: one for each shader and set of constants that its program
// asks for.
#pragma once

#include <cstdint>

#include "kernels/vulkan/device.h"
#include "kernels/vulkan/dispatch.h"
#include "platform/base/span.h"

namespace arn::vulkan {

class Pipelines {
 public:
  // `entries`: room for as many different ones as there will be.
  Status Open(const Device& device, Span<struct PipelineEntry> entries, Diag* diag);
  // Before the first Find(): the driver starts from what it compiled earlier, if it likes that, and
  // Compiled() can be asked for.
  Status StartFrom(const Device& device, Span<const std::byte> compiled, Diag* diag);
  // What the driver has compiled, for another StartFrom(): pages of the caller's, empty when there
  // is nothing (ReleasePages). `bytes` of them are it.
  Span<std::byte> Compiled(const Device& device, size_t* bytes) const;
  void Close(const Device& device);

  // The pipeline of a dispatch, made when there is none like it.
  Status Find(const Device& device, const Dispatch& dispatch, VkPipeline* out, Diag* diag);

  // One that is the caller's to destroy; kept: the driver remembers what it compiled for it.
  Status Make(const Device& device, const Dispatch& dispatch, bool kept, VkPipeline* out,
              Diag* diag);

  // Gives back what pipelines are made from, until another one is made.
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
