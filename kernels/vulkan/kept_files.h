// What is kept of a device in a folder from one session to the next: the pipelines that the driver
// has compiled, which variants of products were measured to be fast (tune_products.h), and whether
// the driver ended the process while it was tested. The names of the files hold the device, the
// driver's version and the shaders, so that a new one of these starts anew.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vulkan/device.h"
#include "platform/base/span.h"
#include "platform/os/mapped_file.h"
#include "platform/os/marker_file.h"

namespace arn::vulkan {

// Goes to the file as it is.
struct DeviceKey {
  uint32_t vendor = 0, device = 0, driver_version = 0, api_version = 0;
  uint8_t uuid[VK_UUID_SIZE] = {};  // pipelineCacheUUID
  uint64_t shaders = 0;             // the hash of all variants
};
DeviceKey KeyOf(const Device& device);

enum class Kept : uint8_t { kPipelines, kTuning };
inline constexpr uint32_t kKeptCount = 2;

class KeptFiles {
 public:
  // `folder` null: nothing is kept. A folder that cannot be written to is as none. kUnsupported,
  // with the file's name, when a process has ended while it tested this device.
  Status Open(const char* folder, const DeviceKey& key, Diag* diag);
  // What was kept; empty when there is nothing, or something that is not whole or not of this
  // device. Valid until Close().
  Span<const std::byte> contents(Kept kind) const;
  bool is_open() const { return path_[0] != '\0'; }
  // Replaces the file, unless it holds just this. When that fails, there is none next time.
  void Keep(Kept kind, Span<const std::byte> data);
  // The test has come to its end, whatever it found.
  void EndTest() { RemoveMarker(&marker_); }
  void Close();

 private:
  DeviceKey key_;
  char path_[kMaxPathBytes] = {0};  // of all, without the suffix of each
  MappedFile files_[kKeptCount];
  bool is_whole_[kKeptCount] = {};
  MarkerFile marker_;
};

}  // namespace arn::vulkan
