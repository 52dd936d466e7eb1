#include "tools/arenite/bench_profile.h"

#include <algorithm>

#include "tools/arenite/io.h"

namespace arn::tool {
namespace {

constexpr double kGiga = 1e9;

void Add(const ProfileRow& row, ProfileRow* sum) {
  sum->ns += row.ns;
  sum->bytes += row.bytes;
  sum->integer_ops += row.integer_ops;
  sum->float_ops += row.float_ops;
}

bool SameKind(const ProfileRow& a, const ProfileRow& b) {
  return a.op == b.op && a.dtype == b.dtype && a.rows == b.rows && a.cols == b.cols;
}

std::string NameOf(const ProfileRow& row) {
  if (row.rows == 0) return row.op;
  return Format("%s %s %ux%u", row.op.c_str(), row.dtype.c_str(), row.rows, row.cols);
}

// Returns the serial share of the single-thread time (Amdahl's law).
std::string SerialShare(uint64_t ns, uint64_t ns_alone, uint32_t n_threads) {
  if (ns_alone == 0 || n_threads < 2) return "-";
  const double ideal = 1.0 / n_threads;
  const double share =
      (static_cast<double>(ns) / static_cast<double>(ns_alone) - ideal) / (1 - ideal);
  return Format("%.0f %%", 100 * std::clamp(share, 0.0, 1.0));
}

// Returns the time of the same row in the single-thread profile; `whole`: of all rows of the
// operation.
uint64_t NsOf(const Profile* profile, const ProfileRow& row, bool whole) {
  uint64_t ns = 0;
  if (profile == nullptr) return 0;
  for (const ProfileRow& other : profile->rows) {
    if (whole ? other.op == row.op : SameKind(other, row)) ns += other.ns;
  }
  return ns;
}

class Table {
 public:
  Table(const Profile& profile, const limits::Limits& limits, const Profile* alone)
      : profile_(profile), limits_(limits), alone_(alone) {}

  std::string Text() {
    text_ =
        "| step                           | us/token |  share |    GB/s |   GOP/s | of the limit   "
        "  "
        "|  serial |\n"
        "|--------------------------------|---------:|-------:|--------:|--------:|----------------"
        "-:"
        "|--------:|\n";
    uint64_t in_steps = 0;
    for (size_t i = 0; i < profile_.rows.size();) {
      size_t end = i;
      ProfileRow sum = profile_.rows[i];
      sum.ns = sum.bytes = sum.integer_ops = sum.float_ops = 0;
      for (; end < profile_.rows.size() && profile_.rows[end].op == sum.op; ++end) {
        Add(profile_.rows[end], &sum);
      }
      in_steps += sum.ns;
      if (end - i > 1) Line(sum.op, sum, true);
      for (size_t j = i; j < end; ++j) {
        Line((end - i > 1 ? "  " : "") + NameOf(profile_.rows[j]), profile_.rows[j], false);
      }
      i = end;
    }
    ProfileRow rest;
    rest.ns = profile_.total_ns - std::min(profile_.total_ns, in_steps);
    Line("between the steps", rest, false);
    return text_;
  }

 private:
  void Line(const std::string& name, const ProfileRow& row, bool whole) {
    const auto ns = static_cast<double>(row.ns);
    const auto ops = static_cast<double>(row.integer_ops + row.float_ops);
    const auto speed = [&](double n) { return n > 0 && ns > 0 ? Format("%.2f", n / ns) : "-"; };
    const Bound bound = BoundOf(row, limits_);
    const std::string of_limit =
        bound.ns > 0 && ns > 0 ? Format("%.0f %% %s", 100 * bound.ns / ns, bound.by) : "-";
    text_ +=
        Format("| %-30s | %8.2f | %4.1f %% | %7s | %7s | %16s | %7s |\n", name.c_str(),
               ns / 1e3 / static_cast<double>(profile_.tokens),
               100 * ns / static_cast<double>(profile_.total_ns),
               speed(static_cast<double>(row.bytes)).c_str(), speed(ops).c_str(), of_limit.c_str(),
               SerialShare(row.ns, NsOf(alone_, row, whole), limits_.n_threads).c_str());
  }

  const Profile& profile_;
  const limits::Limits& limits_;
  const Profile* alone_;
  std::string text_;
};

}  // namespace

Profiler::Profiler(const Session& session)
    : session_(session), memory_(arn_session_profile_bytes(session.get()) / sizeof(uint64_t)) {
  session_.Check(
      arn_session_profile_start(session_.get(), memory_.data(), memory_.size() * sizeof(uint64_t)));
}

Profiler::~Profiler() { arn_session_profile_stop(session_.get()); }

Profile Profiler::Take(uint64_t tokens, uint64_t total_ns) const {
  Profile profile;
  profile.tokens = tokens;
  profile.total_ns = total_ns;
  const uint32_t n = arn_session_step_count(session_.get());
  for (uint32_t i = 0; i < n; ++i) {
    arn_step_profile step = ARN_STEP_PROFILE_INIT;
    session_.Check(arn_session_profile_step(session_.get(), i, &step));
    if (step.runs == 0) continue;
    const ProfileRow row = {step.op,          step.dtype,    step.rows,
                            step.cols,        step.ns,       step.weight_bytes + step.kv_bytes,
                            step.integer_ops, step.float_ops};
    // Inserts after the last row of the same operation, to keep its rows together.
    auto at = profile.rows.end();
    for (auto it = profile.rows.begin(); it != profile.rows.end(); ++it) {
      if (it->op == row.op) at = it + 1;
    }
    const auto same = std::find_if(profile.rows.begin(), profile.rows.end(),
                                   [&](const ProfileRow& other) { return SameKind(other, row); });
    if (same != profile.rows.end()) {
      Add(row, &*same);
    } else {
      profile.rows.insert(at, row);
    }
  }
  return profile;
}

Bound BoundOf(const ProfileRow& row, const limits::Limits& limits) {
  const double memory = 1e9 * static_cast<double>(row.bytes) / limits.read_bytes_per_s;
  const double integer = 1e9 * static_cast<double>(row.integer_ops) / limits.integer_ops_per_s;
  const double floating = 1e9 * static_cast<double>(row.float_ops) / limits.float_ops_per_s;
  // Elementwise operations have no meaningful bound: their weights are a few bytes.
  if (integer + floating == 0) return {};
  if (memory >= integer + floating) return {memory, "memory"};
  return {integer + floating, integer >= floating ? "integer" : "float"};
}

std::string ProfileTable(const Profile& profile, const limits::Limits& limits,
                         const Profile* alone) {
  return Table(profile, limits, alone).Text();
}

void WriteProfile(const Profile& profile, const limits::Limits& limits, JsonWriter* json) {
  json->Key("profile").BeginArray();
  for (const ProfileRow& row : profile.rows) {
    const Bound bound = BoundOf(row, limits);
    json->BeginObject();
    json->Key("op").String(row.op);
    if (row.rows != 0) {
      json->Key("weights").String(row.dtype);
      json->Key("rows").Uint(row.rows);
      json->Key("cols").Uint(row.cols);
    }
    json->Key("ns_per_token")
        .Number(static_cast<double>(row.ns) / static_cast<double>(profile.tokens));
    json->Key("share").Number(static_cast<double>(row.ns) / static_cast<double>(profile.total_ns));
    json->Key("bytes").Uint(row.bytes);
    json->Key("integer_ops").Uint(row.integer_ops);
    json->Key("float_ops").Uint(row.float_ops);
    json->Key("of_limit").Number(row.ns == 0 ? 0 : bound.ns / static_cast<double>(row.ns));
    json->Key("limit").String(bound.by);
    json->EndObject();
  }
  json->EndArray();
}

std::string LimitsLine(const limits::Limits& limits) {
  return Format("limits of %u thread%s: reads %.1f GB/s; %s %.0f GOP/s; %s %.0f GFLOP/s\n",
                limits.n_threads, limits.n_threads == 1 ? "" : "s", limits.read_bytes_per_s / kGiga,
                limits.integer_instruction, limits.integer_ops_per_s / kGiga,
                limits.float_instruction, limits.float_ops_per_s / kGiga);
}

void WriteLimits(const limits::Limits& limits, JsonWriter* json) {
  json->BeginObject();
  json->Key("threads").Uint(limits.n_threads);
  json->Key("read_gb_per_s").Number(limits.read_bytes_per_s / kGiga);
  json->Key("integer_gop_per_s").Number(limits.integer_ops_per_s / kGiga);
  json->Key("integer_instruction").String(limits.integer_instruction);
  json->Key("float_gop_per_s").Number(limits.float_ops_per_s / kGiga);
  json->Key("float_instruction").String(limits.float_instruction);
  json->EndObject();
}

}  // namespace arn::tool
