// Shows progress and the time left on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace arn::cli {

// Returns "45 s", "3 min 20 s", "2 h 5 min".
std::string Duration(double seconds);

// Seconds before the first line for work that often takes a moment: a log should not fill with it.
double UsualPatience();

// On a terminal: one line, redrawn; elsewhere: a plain line for every tenth of the work. Nothing if
// quiet.
class Progress {
 public:
  // `patience`: seconds of work before the first line; short work shows none.
  explicit Progress(bool quiet, double patience = 0);
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
  using Clock = std::chrono::steady_clock;

  double SecondsSince(Clock::time_point time) const;

  bool quiet_;
  bool can_redraw_;
  double patience_;
  bool is_drawn_ = false;
  uint64_t shown_step_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_;
};

}  // namespace arn::cli
