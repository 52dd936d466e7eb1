// What the converter shows on stderr while it works.
#pragma once

#include <cstdint>
#include <string>

namespace arn::convert {

// On a terminal one line that is redrawn; elsewhere a plain line for every tenth of the work.
// Nothing when quiet.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `label`: what is being worked on.
  void Update(const std::string& label, uint64_t done, uint64_t total);
  // Removes the line, so that something else can be printed. It comes back with the next Update.
  void Clear();
  // Starts over, for the next piece of work.
  void Reset();

 private:
  bool quiet_;
  bool is_terminal_;
  bool is_drawn_ = false;
  uint64_t shown_step_ = 0;
};

}  // namespace arn::convert
