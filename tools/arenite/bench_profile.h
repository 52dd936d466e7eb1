// What bench prints about the steps of a run: their times next to what the machine could do.
#pragma once

#include <arenite/profile.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/arenite/json.h"
#include "tools/arenite/model.h"
#include "tools/limits/limits.h"

namespace arn::tool {

// Steps that do the same: those of one operation with matrices of one type and shape.
struct ProfileRow {
  std::string op, dtype;
  uint32_t rows = 0, cols = 0;  // 0: no matrix
  uint64_t ns = 0, bytes = 0, integer_ops = 0, float_ops = 0;
};

// One case, run with the clock at every step.
struct Profile {
  uint64_t tokens = 0;
  uint64_t total_ns = 0;  // of the calls, what is between the steps included
  std::vector<ProfileRow> rows;
};

// Takes a profile of what a session does while this lives.
class Profiler {
 public:
  explicit Profiler(const Session& session);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // What was taken until now. `tokens` in `total_ns`.
  Profile Take(uint64_t tokens, uint64_t total_ns) const;

 private:
  const Session& session_;
  std::vector<uint64_t> memory_;
};

// The least time that a row's work takes on such a machine, and what makes it so: "memory",
// "integer", "float", or "" when there is nothing to be held against it.
struct Bound {
  double ns = 0;
  const char* by = "";
};
Bound BoundOf(const ProfileRow& row, const limits::Limits& limits);

// A table, the rows of one operation together. `alone`: the same case with one thread, or null;
// with it the table says which share of each time threads do not shorten.
std::string ProfileTable(const Profile& profile, const limits::Limits& limits,
                         const Profile* alone);
// The key "profile": a list of objects.
void WriteProfile(const Profile& profile, const limits::Limits& limits, JsonWriter* json);

// One line.
std::string LimitsLine(const limits::Limits& limits);
// An object.
void WriteLimits(const limits::Limits& limits, JsonWriter* json);

}  // namespace arn::tool
