// Per-device files kept in a folder between sessions: the pipeline cache, the measured matmul
// variants (tune_matmuls.h), and a marker that detects a driver crash during the self-test. File
// names contain the device, the driver version and a hash of the shaders, so a change of any of
// them starts afresh.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vulkan/device/device.h"
#include "platform/base/span.h"
#include "platform/os/mapped_file.h"
#include "platform/os/marker_file.h"

namespace arn::vulkan {

// Written to the file as is.
struct DeviceKey {
  uint32_t vendor = 0, device = 0, driver_version = 0, api_version = 0;
  uint8_t uuid[VK_UUID_SIZE] = {};  // pipelineCacheUUID
  uint64_t shaders = 0;             // hash of all shader variants, and of what is avoided
};
DeviceKey KeyOf(const Device& device);

enum class CachedFile : uint8_t { kPipelines, kTuning };
inline constexpr uint32_t kCachedFileCount = 2;

class PipelineCache {
 public:
  // Opens the files. `folder` null, or not writable: nothing is kept. Returns kUnsupported with the
  // file name if an earlier process ended during the self-test of this device.
  Status Open(const char* folder, const DeviceKey& key, Diag* diag);
  // Returns the file's data; empty if missing, damaged or of another device. Valid until Close().
  Span<const std::byte> contents(CachedFile kind) const;
  bool is_open() const { return path_[0] != '\0'; }
  // Replaces the file, unless it already has this content. On failure the file is missing next
  // time.
  void Store(CachedFile kind, Span<const std::byte> data);
  // Call when the self-test has finished, whatever its result.
  void EndTest() { RemoveMarker(&marker_); }
  void Close();

 private:
  DeviceKey key_;
  char path_[kMaxPathBytes] = {0};  // common prefix of the files, without suffix
  MappedFile files_[kCachedFileCount];
  bool is_whole_[kCachedFileCount] = {};
  MarkerFile marker_;
};

}  // namespace arn::vulkan
