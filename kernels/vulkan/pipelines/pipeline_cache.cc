#include "kernels/vulkan/pipelines/pipeline_cache.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "kernels/vulkan/shaders/shaders.h"
#include "platform/base/hash.h"

namespace arn::vulkan {
namespace {

constexpr char kMagics[kCachedFileCount][9] = {"ARNPIPE1", "ARNTUNE1"};
constexpr const char* kSuffixes[kCachedFileCount] = {".pipelines", ".tuning"};
constexpr const char* kTesting = ".testing";
constexpr size_t kMaxSuffix = 16;

struct Header {
  char magic[8];
  DeviceKey key;
  uint64_t bytes, hash;  // of the data that follows
  uint64_t header_hash;  // hash of the fields above
};

uint64_t HashOf(const Header& header) { return Xxh64(&header, offsetof(Header, header_hash)); }

// True if the file has a valid header of this device and all its data.
bool IsWhole(Span<const std::byte> file, const char* magic, const DeviceKey& key) {
  Header header;
  if (file.size() < sizeof header) return false;
  std::memcpy(&header, file.data(), sizeof header);
  return std::memcmp(header.magic, magic, sizeof header.magic) == 0 &&
         header.header_hash == HashOf(header) && std::memcmp(&header.key, &key, sizeof key) == 0 &&
         header.bytes == file.size() - sizeof header &&
         header.hash == Xxh64(file.data() + sizeof header, file.size() - sizeof header);
}

// base: at least kMaxSuffix shorter than kMaxPathBytes.
struct CachePath {
  CachePath(const char* base, const char* suffix) {
    const size_t n = std::strlen(base);
    std::memcpy(text, base, n);
    std::memcpy(text + n, suffix, std::strlen(suffix) + 1);
  }
  char text[kMaxPathBytes];
};

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
    for (uint32_t variant = 0; variant < kShaderVariants; ++variant) {
      const Span<const uint32_t> words =
          SpirvOf(static_cast<Shader>(s), {(variant & 1) != 0, (variant & 2) != 0});
      if (!words.empty()) hash.Update(words.data(), words.size() * sizeof(uint32_t));
    }
  }
  // Measurements depend on what is avoided.
  const uint32_t avoided = device.avoided();
  hash.Update(&avoided, sizeof avoided);
  key.shaders = hash.Digest();
  return key;
}

Status PipelineCache::Open(const char* folder, const DeviceKey& key, Diag* diag) {
  key_ = key;
  if (folder == nullptr) return Status::kOk;
  const uint64_t name = Xxh64(&key, sizeof key);
  const int n = std::snprintf(path_, sizeof path_, "%s/arenite-%016" PRIx64, folder, name);
  if (n < 0 || static_cast<size_t>(n) + kMaxSuffix > sizeof path_) {
    path_[0] = '\0';
    return Status::kOk;
  }
  const CachePath testing(path_, kTesting);
  if (MakeMarker(testing.text, &marker_) == Marking::kLeft) {
    return diag->Fail(Status::kUnsupported,
                      "Vulkan: a process ended while it tested this driver; remove %s to try again",
                      testing.text);
  }
  for (uint32_t i = 0; i < kCachedFileCount; ++i) {
    int fd = -1;
    Diag inner;
    if (OpenToMap(CachePath(path_, kSuffixes[i]).text, &fd, &inner) != Status::kOk) continue;
    if (MapFd(fd, 0, 0, &files_[i], &inner) != Status::kOk) files_[i].bytes = {};
    CloseMapped(fd);
    is_whole_[i] = IsWhole(files_[i].bytes, kMagics[i], key);
  }
  return Status::kOk;
}

Span<const std::byte> PipelineCache::contents(CachedFile kind) const {
  const auto i = static_cast<uint32_t>(kind);
  if (!is_whole_[i]) return {};
  const Span<const std::byte> file = files_[i].bytes;
  return file.subspan(sizeof(Header), file.size() - sizeof(Header));
}

void PipelineCache::Store(CachedFile kind, Span<const std::byte> data) {
  const Span<const std::byte> old = contents(kind);
  if (!is_open() || data.empty() ||
      (old.size() == data.size() && std::memcmp(old.data(), data.data(), old.size()) == 0)) {
    return;
  }
  const auto i = static_cast<uint32_t>(kind);
  Header header = {};
  std::memcpy(header.magic, kMagics[i], sizeof header.magic);
  header.key = key_;
  header.bytes = data.size();
  header.hash = Xxh64(data.data(), data.size());
  header.header_hash = HashOf(header);
  Diag inner;
  ReplaceFile file;
  if (BeginReplace(CachePath(path_, kSuffixes[i]).text, 0600, &file, &inner) != Status::kOk) return;
  const Span<const std::byte> head(reinterpret_cast<const std::byte*>(&header), sizeof header);
  if (WriteReplace(&file, 0, head, &inner) == Status::kOk &&
      WriteReplace(&file, sizeof header, data, &inner) == Status::kOk) {
    (void)FinishReplace(&file, &inner);
  } else {
    AbandonReplace(&file);
  }
}

void PipelineCache::Close() {
  EndTest();
  for (uint32_t i = 0; i < kCachedFileCount; ++i) {
    UnmapFile(&files_[i]);
    files_[i] = MappedFile();
    is_whole_[i] = false;
  }
  path_[0] = '\0';
}

}  // namespace arn::vulkan
