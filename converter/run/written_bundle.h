// Runs a bundle that was just written with one matrix at a time in memory: its pages are dropped
// from the process as soon as the next matrix is multiplied, and stay in the system's cache. Others
// may write to the file: the mapping is shared.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "converter/run/runner.h"
#include "platform/os/mapped_file.h"

namespace arn::convert {

class WrittenBundle {
 public:
  // Throws ConvertError, as Runner.
  WrittenBundle(const std::filesystem::path& bundle, const std::string& purpose);
  ~WrittenBundle();
  WrittenBundle(const WrittenBundle&) = delete;
  WrittenBundle& operator=(const WrittenBundle&) = delete;

  Runner& runner() { return *runner_; }
  const Runner& runner() const { return *runner_; }
  // The file as it is mapped: what is written to the file later is seen here too.
  Span<const std::byte> bytes() const { return file_.bytes; }
  // Drops the pages from the process. They are read again on use.
  void Forget() const;
  // Starts the runner's session, which forgets each matrix before the next. An observer of its
  // matmuls that replaces this one should do so too.
  void Start(const arn_session_options& options);

 private:
  static void OnMatmul(void* user, const char*, const float*, size_t, size_t, const float*, size_t);

  MappedFile file_;
  std::optional<Runner> runner_;
};

}  // namespace arn::convert
