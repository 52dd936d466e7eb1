// Profile of a run for bench: the time of each step next to the machine's limits.
#pragma once

#include <arenite/profile.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/arenite/json.h"
#include "tools/arenite/model.h"
#include "tools/limits/limits.h"

namespace arn::tool {

// Steps of the same operation, with matrices of the same type and shape.
struct ProfileRow {
  std::string op, dtype;
  uint32_t rows = 0, cols = 0;  // 0: no matrix
  uint64_t ns = 0, bytes = 0, integer_ops = 0, float_ops = 0;
};

// One case, run with a timer around every step.
struct Profile {
  uint64_t tokens = 0;
  uint64_t total_ns = 0;  // of the calls, including the time between steps
  std::vector<ProfileRow> rows;
};

// Profiles a session during the object's lifetime.
class Profiler {
 public:
  explicit Profiler(const Session& session);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Returns the profile so far: `tokens` tokens in `total_ns`.
  Profile Take(uint64_t tokens, uint64_t total_ns) const;

 private:
  const Session& session_;
  std::vector<uint64_t> memory_;
};

// The minimum time of a row's work on such a machine, and the limiting resource: "memory",
// "integer", "float", or "" if no bound applies.
struct Bound {
  double ns = 0;
  const char* by = "";
};
Bound BoundOf(const ProfileRow& row, const limits::Limits& limits);

// Returns a table, with the rows of one operation together. `alone`: the same case with one thread,
// or null; adds the serial share of each time.
std::string ProfileTable(const Profile& profile, const limits::Limits& limits,
                         const Profile* alone);
// Writes the key "profile": a list of objects.
void WriteProfile(const Profile& profile, const limits::Limits& limits, JsonWriter* json);

// Returns one line.
std::string LimitsLine(const limits::Limits& limits);
// Writes an object.
void WriteLimits(const limits::Limits& limits, JsonWriter* json);

}  // namespace arn::tool
