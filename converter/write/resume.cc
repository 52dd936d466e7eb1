#include "converter/write/resume.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "converter/base/error.h"
#include "platform/base/hash.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kCopiedBytes = uint64_t{4} << 20;

fs::path ListPath(const fs::path& output) { return fs::path(output) += ".resume"; }

}  // namespace

ResumeFile::ResumeFile(const fs::path& output, const std::string& key)
    : path_(ListPath(output)), key_(key) {
  std::ifstream list(path_);
  std::string line, unfinished;
  if (!std::getline(list, line) || line != key || !std::getline(list, unfinished)) return;
  std::error_code ignored;
  if (!fs::is_regular_file(unfinished, ignored)) return;
  left_.emplace(unfinished);
  std::string name;
  Done done;
  // A line that was cut off ends the list: its hash would be wrong anyway.
  while (list >> name >> done.offset >> done.bytes >> done.hash >> done.error) done_[name] = done;
}

void ResumeFile::Begin(const fs::path& unfinished) {
  list_.open(path_, std::ios::trunc);
  list_ << key_ << "\n" << unfinished.string() << std::endl;
  if (!list_) Fail("%s: cannot write", path_.c_str());
}

std::optional<fbs::Segment> ResumeFile::Take(const std::string& name, uint64_t bytes,
                                             BundleWriter* writer, float* error) {
  const auto found = done_.find(name);
  if (found == done_.end() || found->second.bytes != bytes) return std::nullopt;
  const Done& done = found->second;
  if (done.offset > left_->bytes() || bytes > left_->bytes() - done.offset) return std::nullopt;
  std::vector<char> block(static_cast<size_t>(std::min(bytes, kCopiedBytes)));
  const auto each_block = [&](const auto& use) {
    for (uint64_t at = 0; at < bytes; at += block.size()) {
      const auto n = static_cast<size_t>(std::min<uint64_t>(block.size(), bytes - at));
      left_->Read(done.offset + at, block.data(), n);
      use(block.data(), n);
    }
  };
  Xxh64Stream hash;
  each_block([&](const char* data, size_t n) { hash.Update(data, n); });
  if (hash.Digest() != done.hash) return std::nullopt;
  writer->BeginSegment(bytes);
  each_block([&](const char* data, size_t n) { writer->Append(data, n); });
  taken_bytes_ += bytes;
  *error = done.error;
  return writer->EndSegment();
}

void ResumeFile::Note(const std::string& name, const fbs::Segment& segment, float error,
                      BundleWriter* writer) {
  writer->Flush();
  list_ << name << ' ' << kSegmentsOffset + segment.offset() << ' ' << segment.bytes() << ' '
        << segment.hash() << ' ' << error << std::endl;
  if (!list_) Fail("%s: cannot write", path_.c_str());
}

void ResumeFile::Remove(const fs::path& output) {
  std::error_code ignored;
  fs::remove(ListPath(output), ignored);
}

}  // namespace arn::convert
