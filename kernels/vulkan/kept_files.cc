#include "kernels/vulkan/kept_files.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "kernels/vulkan/shaders.h"
#include "platform/base/hash.h"

namespace arn::vulkan {
namespace {

constexpr char kMagic[8] = {'A', 'R', 'N', 'P', 'I', 'P', 'E', '1'};

struct Header {
  char magic[8];
  DeviceKey key;
  uint64_t bytes, hash;  // of what follows
  uint64_t header_hash;  // of all before it
};

uint64_t HashOf(const Header& header) { return Xxh64(&header, offsetof(Header, header_hash)); }

// Whether a file is a header of this device and the bytes that it promises.
bool IsWhole(Span<const std::byte> file, const DeviceKey& key) {
  Header header;
  if (file.size() < sizeof header) return false;
  std::memcpy(&header, file.data(), sizeof header);
  return std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
         header.header_hash == HashOf(header) && std::memcmp(&header.key, &key, sizeof key) == 0 &&
         header.bytes == file.size() - sizeof header &&
         header.hash == Xxh64(file.data() + sizeof header, file.size() - sizeof header);
}

}  // namespace

DeviceKey KeyOf(const Device& device) {
  const VkPhysicalDeviceProperties& properties = device.properties();
  DeviceKey key;
  key.vendor = properties.vendorID;
  key.device = properties.deviceID;
  key.driver_version = properties.driverVersion;
  key.api_version = properties.apiVersion;
  std::memcpy(key.uuid, properties.pipelineCacheUUID, sizeof key.uuid);
  Xxh64Stream hash;
  for (uint32_t s = 0; s < kShaderCount; ++s) {
    for (uint32_t variant = 0; variant < 4; ++variant) {
      const Span<const uint32_t> words =
          SpirvOf(static_cast<Shader>(s), {(variant & 1) != 0, (variant & 2) != 0});
      hash.Update(words.data(), words.size() * sizeof(uint32_t));
    }
  }
  key.shaders = hash.Digest();
  return key;
}

Status KeptFiles::Open(const char* folder, const DeviceKey& key, Diag* diag) {
  key_ = key;
  if (folder == nullptr) return Status::kOk;
  const uint64_t name = Xxh64(&key, sizeof key);
  char testing[kMaxPathBytes];
  std::snprintf(testing, sizeof testing, "%s/arenite-%016" PRIx64 ".testing", folder, name);
  const int n =
      std::snprintf(path_, sizeof path_, "%s/arenite-%016" PRIx64 ".pipelines", folder, name);
  if (n < 0 || static_cast<size_t>(n) >= sizeof path_) {
    path_[0] = '\0';
    return Status::kOk;
  }
  if (MakeMarker(testing, &marker_) == Marking::kLeft) {
    return diag->Fail(Status::kUnsupported,
                      "Vulkan: a process ended while it tested this driver; remove %s to try again",
                      testing);
  }
  int fd = -1;
  Diag inner;
  if (OpenToMap(path_, &fd, &inner) != Status::kOk) return Status::kOk;
  if (MapFd(fd, 0, 0, &file_, &inner) != Status::kOk) file_.bytes = {};
  CloseMapped(fd);
  is_whole_ = IsWhole(file_.bytes, key);
  return Status::kOk;
}

Span<const std::byte> KeptFiles::pipelines() const {
  if (!is_whole_) return {};
  return file_.bytes.subspan(sizeof(Header), file_.bytes.size() - sizeof(Header));
}

void KeptFiles::KeepPipelines(Span<const std::byte> data) {
  const Span<const std::byte> old = pipelines();
  if (!is_open() || data.empty() ||
      (old.size() == data.size() && std::memcmp(old.data(), data.data(), old.size()) == 0)) {
    return;
  }
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key = key_;
  header.bytes = data.size();
  header.hash = Xxh64(data.data(), data.size());
  header.header_hash = HashOf(header);
  Diag inner;
  ReplaceFile file;
  if (BeginReplace(path_, &file, &inner) != Status::kOk) return;
  const Span<const std::byte> head(reinterpret_cast<const std::byte*>(&header), sizeof header);
  if (WriteReplace(&file, 0, head, &inner) == Status::kOk &&
      WriteReplace(&file, sizeof header, data, &inner) == Status::kOk) {
    (void)FinishReplace(&file, &inner);
  } else {
    AbandonReplace(&file);
  }
}

void KeptFiles::Close() {
  EndTest();
  UnmapFile(&file_);
  file_ = MappedFile();
  is_whole_ = false;
  path_[0] = '\0';
}

}  // namespace arn::vulkan
