#include "tools/bundle/bundle_patch.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "platform/os/mapped_file.h"
#include "platform/os/replace_file.h"

namespace arn::bundle {
namespace {

constexpr char kPatchMagic[8] = {'A', 'R', 'N', 'D', 'I', 'F', 'F', '\0'};
constexpr uint32_t kPatchVersion = 1;
constexpr size_t kPatchBlock = 16384;
constexpr uint64_t kFromPatch = UINT64_MAX;
constexpr size_t kWrittenBytes = size_t{4} << 20;

struct PatchHeader {
  char magic[8];
  uint32_t version;
  uint32_t n_steps;
  uint64_t old_bytes, old_hash, new_bytes, new_hash;
  uint64_t steps_hash;  // XXH64 of this header up to here, continued over the steps
};
static_assert(sizeof(PatchHeader) == 56);

// Appends bytes [from, from + bytes) of the old file, or the next ones of the patch.
struct PatchStep {
  uint64_t from, bytes;
};

[[noreturn]] __attribute__((format(printf, 1, 2))) void Fail(const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  throw PatchError(text);
}

class Mapped {
 public:
  explicit Mapped(const std::string& path) : path_(path) {
    Diag diag;
    int fd = -1;
    if (OpenToMap(path.c_str(), &fd, &diag) != Status::kOk) Fail("%s", diag.text());
    const Status status = MapFd(fd, 0, 0, &file_, &diag);
    CloseMapped(fd);
    if (status != Status::kOk) Fail("%s: %s", path.c_str(), diag.text());
  }
  ~Mapped() { UnmapFile(&file_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  const char* path() const { return path_.c_str(); }
  const std::byte* data() const { return file_.bytes.data(); }
  uint64_t size() const { return file_.bytes.size(); }
  uint64_t Hash() const { return Xxh64(data(), file_.bytes.size()); }

 private:
  const std::string path_;
  MappedFile file_;
};

// A file that appears when it is whole.
class Replaced {
 public:
  explicit Replaced(const std::string& path) {
    Diag diag;
    if (BeginReplace(path.c_str(), 0666, &file_, &diag) != Status::kOk) Fail("%s", diag.text());
  }
  ~Replaced() { AbandonReplace(&file_); }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

  void Append(const void* data, uint64_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    for (uint64_t at = 0; at < bytes; at += kWrittenBytes) {
      const auto n = static_cast<size_t>(std::min<uint64_t>(kWrittenBytes, bytes - at));
      hash_.Update(from + at, n);
      Diag diag;
      if (WriteReplace(&file_, size_, {from + at, n}, &diag) != Status::kOk) {
        Fail("%s", diag.text());
      }
      size_ += n;
    }
  }
  void Finish() {
    Diag diag;
    if (FinishReplace(&file_, &diag) != Status::kOk) Fail("%s", diag.text());
  }
  const char* temporary() const { return file_.temporary; }
  uint64_t size() const { return size_; }
  uint64_t Hash() const { return hash_.Digest(); }

 private:
  ReplaceFile file_;
  uint64_t size_ = 0;
  Xxh64Stream hash_;
};

uint64_t StepsHash(const PatchHeader& header, const PatchStep* steps) {
  Xxh64Stream hash;
  hash.Update(&header, sizeof header - sizeof header.steps_hash);
  hash.Update(steps, header.n_steps * sizeof *steps);
  return hash.Digest();
}

// Finds the new file's blocks in the old file: first where they were, then anywhere at a block.
class BlockFinder {
 public:
  BlockFinder(const Mapped& old_file, const Mapped& new_file) : old_(old_file), new_(new_file) {
    for (uint64_t at = 0; at + kPatchBlock <= old_.size(); at += kPatchBlock) {
      places_.emplace(Xxh64(old_.data() + at, kPatchBlock), at);
    }
  }

  // Returns where the block at `at` lies in the old file, preferably at `likely`; kFromPatch: not.
  uint64_t Find(uint64_t at, uint64_t likely) const {
    if (IsAt(at, likely)) return likely;
    const auto found = places_.find(Xxh64(new_.data() + at, kPatchBlock));
    return found != places_.end() && IsAt(at, found->second) ? found->second : kFromPatch;
  }

 private:
  bool IsAt(uint64_t at, uint64_t place) const {
    return place <= old_.size() && old_.size() - place >= kPatchBlock &&
           std::memcmp(new_.data() + at, old_.data() + place, kPatchBlock) == 0;
  }

  const Mapped& old_;
  const Mapped& new_;
  std::unordered_map<uint64_t, uint64_t> places_;
};

void AddStep(uint64_t from, uint64_t bytes, std::vector<PatchStep>* steps) {
  if (!steps->empty()) {
    PatchStep& last = steps->back();
    const bool goes_on = from == kFromPatch
                             ? last.from == kFromPatch
                             : last.from != kFromPatch && last.from + last.bytes == from;
    if (goes_on) {
      last.bytes += bytes;
      return;
    }
  }
  steps->push_back({from, bytes});
}

std::vector<PatchStep> FindSteps(const Mapped& old_file, const Mapped& new_file) {
  const BlockFinder finder(old_file, new_file);
  std::vector<PatchStep> steps;
  uint64_t likely = 0;
  for (uint64_t at = 0; at < new_file.size(); at += kPatchBlock) {
    const uint64_t n = std::min<uint64_t>(kPatchBlock, new_file.size() - at);
    const uint64_t from = n == kPatchBlock ? finder.Find(at, likely) : kFromPatch;
    AddStep(from, n, &steps);
    likely = (from == kFromPatch ? likely : from) + kPatchBlock;
  }
  return steps;
}

// Throws unless the patch is whole and makes its new file of `old_file`. Returns its steps.
const PatchStep* CheckPatch(const Mapped& patch, const Mapped& old_file, PatchHeader* header) {
  if (patch.size() < sizeof *header) {
    Fail("%s: truncated: %llu bytes, a patch has at least %zu", patch.path(),
         static_cast<unsigned long long>(patch.size()), sizeof *header);
  }
  std::memcpy(header, patch.data(), sizeof *header);
  if (std::memcmp(header->magic, kPatchMagic, sizeof kPatchMagic) != 0) {
    Fail("%s: not a patch of arenite bundle diff", patch.path());
  }
  if (header->version != kPatchVersion) {
    Fail("%s: version %u of patches, expected %u", patch.path(), header->version, kPatchVersion);
  }
  const uint64_t steps_bytes = uint64_t{header->n_steps} * sizeof(PatchStep);
  if (steps_bytes > patch.size() - sizeof *header) {
    Fail("%s: truncated: %u steps do not fit", patch.path(), header->n_steps);
  }
  const auto* steps = reinterpret_cast<const PatchStep*>(patch.data() + sizeof *header);
  if (StepsHash(*header, steps) != header->steps_hash) {
    Fail("%s: damaged: its hash does not match", patch.path());
  }
  if (old_file.size() != header->old_bytes || old_file.Hash() != header->old_hash) {
    Fail("%s: is not the file that %s was made for", old_file.path(), patch.path());
  }
  uint64_t total = 0, own = 0;
  for (uint32_t i = 0; i < header->n_steps; ++i) {
    const PatchStep& step = steps[i];
    const bool is_own = step.from == kFromPatch;
    const bool fits =
        is_own || (step.from <= old_file.size() && step.bytes <= old_file.size() - step.from);
    if (!fits || !CheckedAdd(total, step.bytes, &total) ||
        (is_own && !CheckedAdd(own, step.bytes, &own))) {
      Fail("%s: step %u leaves the old file", patch.path(), i);
    }
  }
  if (total != header->new_bytes || own != patch.size() - sizeof *header - steps_bytes) {
    Fail("%s: truncated, or its steps do not add up to the new file", patch.path());
  }
  return steps;
}

}  // namespace

PatchSizes WritePatch(const std::string& old_path, const std::string& new_path,
                      const std::string& patch_path) {
  const Mapped old_file(old_path), new_file(new_path);
  const std::vector<PatchStep> steps = FindSteps(old_file, new_file);
  PatchHeader header = {};
  std::memcpy(header.magic, kPatchMagic, sizeof header.magic);
  header.version = kPatchVersion;
  header.n_steps = static_cast<uint32_t>(steps.size());
  header.old_bytes = old_file.size();
  header.old_hash = old_file.Hash();
  header.new_bytes = new_file.size();
  header.new_hash = new_file.Hash();
  header.steps_hash = StepsHash(header, steps.data());
  Replaced patch(patch_path);
  patch.Append(&header, sizeof header);
  patch.Append(steps.data(), steps.size() * sizeof(PatchStep));
  PatchSizes sizes;
  uint64_t at = 0;
  for (const PatchStep& step : steps) {
    if (step.from == kFromPatch) {
      patch.Append(new_file.data() + at, step.bytes);
    } else {
      sizes.copied_bytes += step.bytes;
    }
    at += step.bytes;
  }
  patch.Finish();
  sizes.new_bytes = new_file.size();
  sizes.patch_bytes = patch.size();
  return sizes;
}

PatchSizes ApplyPatch(const std::string& old_path, const std::string& patch_path,
                      const std::string& new_path,
                      const std::function<void(const std::string& temporary)>& check) {
  const Mapped old_file(old_path), patch(patch_path);
  PatchHeader header;
  const PatchStep* steps = CheckPatch(patch, old_file, &header);
  Replaced made(new_path);
  PatchSizes sizes;
  const std::byte* own = reinterpret_cast<const std::byte*>(steps + header.n_steps);
  for (uint32_t i = 0; i < header.n_steps; ++i) {
    const PatchStep& step = steps[i];
    if (step.from == kFromPatch) {
      made.Append(own, step.bytes);
      own += step.bytes;
    } else {
      made.Append(old_file.data() + step.from, step.bytes);
      sizes.copied_bytes += step.bytes;
    }
  }
  if (made.Hash() != header.new_hash) {
    Fail("%s: damaged: the file that it makes has another hash", patch.path());
  }
  check(made.temporary());
  made.Finish();
  sizes.new_bytes = made.size();
  sizes.patch_bytes = patch.size();
  return sizes;
}

}  // namespace arn::bundle
