// --resume: takes finished segments from the file that an interrupted run of the same conversion
// left, instead of making them again.
//
// Beside the output lies OUTPUT.resume, a text: a line with the key of the conversion, one with the
// path of its unfinished file, then one for each segment of a matrix that is whole in it. A segment
// is taken only if its bytes have the hash of its line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "converter/base/source_file.h"
#include "converter/write/bundle_writer.h"

namespace arn::convert {

class ResumeFile {
 public:
  // Reads what an interrupted run left, unless its key differs. Removes nothing.
  ResumeFile(const std::filesystem::path& output, const std::string& key);

  // Begins the list of this run, whose unfinished file is `unfinished`.
  void Begin(const std::filesystem::path& unfinished);
  // Appends the finished segment `name` of `bytes` bytes to the bundle, with `error` as it was
  // noted. Nothing if there is none, or its bytes are not those that were written.
  std::optional<fbs::Segment> Take(const std::string& name, uint64_t bytes, BundleWriter* writer,
                                   float* error);
  // Notes a finished segment. Flushes the writer.
  void Note(const std::string& name, const fbs::Segment& segment, float error,
            BundleWriter* writer);

  uint64_t taken_bytes() const { return taken_bytes_; }
  // Removes the list of `output`, if there is one.
  static void Remove(const std::filesystem::path& output);

 private:
  struct Done {
    uint64_t offset = 0, bytes = 0, hash = 0;
    float error = 0.0f;
  };

  const std::filesystem::path path_;
  const std::string key_;
  std::optional<SourceFile> left_;
  std::map<std::string, Done> done_;
  std::ofstream list_;
  uint64_t taken_bytes_ = 0;
};

}  // namespace arn::convert
