// Shows progress on stderr.
#pragma once

#include <cstdint>
#include <string>

namespace arn::convert {

// On a terminal: one line, redrawn; elsewhere: a plain line for every tenth of the work. Nothing if
// quiet.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `label`: name of the current work.
  void Update(const std::string& label, uint64_t done, uint64_t total);
  // Removes the line, so that other output can be printed. The next Update redraws it.
  void Clear();
  // Restarts at zero for the next stage.
  void Reset();

 private:
  bool quiet_;
  bool is_terminal_;
  bool is_drawn_ = false;
  uint64_t shown_step_ = 0;
};

}  // namespace arn::convert
