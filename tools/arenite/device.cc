#include "tools/arenite/device.h"

#include <cmath>
#include <limits>

#include "CLI/CLI.hpp"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"
#include "tools/arenite/memory_report.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

// Parses "4-7" or "0,2,5-7", of the first 64 CPUs.
uint64_t ParseCpus(const std::string& text) {
  const auto refuse = [&] {
    return Error(
        Format("--cpus: expected auto, performance, all or CPUs below 64 like 0,4-7, "
               "found '%.40s'",
               text.c_str()));
  };
  uint64_t mask = 0;
  size_t at = 0;
  const auto number = [&] {
    uint32_t value = 0;
    const size_t first = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' && value < 64) {
      value = value * 10 + static_cast<uint32_t>(text[at++] - '0');
    }
    if (at == first || value >= 64) throw refuse();
    return value;
  };
  for (;;) {
    const uint32_t first = number();
    uint32_t last = first;
    if (at < text.size() && text[at] == '-') {
      ++at;
      last = number();
    }
    if (last < first) throw refuse();
    for (uint32_t cpu = first; cpu <= last; ++cpu) mask |= uint64_t{1} << cpu;
    if (at == text.size()) return mask;
    if (text[at++] != ',') throw refuse();
  }
}

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

void AddDeviceOptions(CLI::App* app, DeviceArguments* arguments) {
  app->add_option("--cpus", arguments->cpus,
                  "CPU affinity of the threads: auto, performance (cores), all (no affinity), or "
                  "CPUs like 0,4-7")
      ->capture_default_str();
  app->add_option("--max-tokens-per-s", arguments->max_tokens_per_s,
                  "Maximum decode speed; the session sleeps in between (0: no limit)")
      ->capture_default_str();
  app->add_option("--thermal-limit", arguments->thermal_limit,
                  "Temperature of a thermal zone in degrees Celsius from which the session is "
                  "throttled (0: none)")
      ->capture_default_str();
  app->add_option("--thermal-headroom", arguments->thermal_headroom,
                  "Value of Android's thermal headroom from which the session is throttled; 1 is "
                  "severe throttling (0: none)")
      ->capture_default_str();
  app->add_option("--thermal-duty", arguments->thermal_duty,
                  "Percent of the time that a throttled session runs (0: 50)")
      ->capture_default_str();
  app->add_option("--thermal-zone", arguments->thermal_zone,
                  "Reads only thermal zones whose type contains this [all]");
  app->add_option("--system-root", arguments->system_root, "Folder that contains sys [/]");
  app->add_flag("--stats", arguments->stats,
                "Prints bytes read, the threads' CPUs, energy and temperature at the end");
}

void ApplyDeviceOptions(const DeviceArguments& arguments, arn_session_options* options) {
  if (arguments.cpus == "performance") {
    options->cpus = ARN_CPUS_PERFORMANCE;
  } else if (arguments.cpus == "all") {
    options->cpus = ARN_CPUS_ALL;
  } else if (arguments.cpus != "auto") {
    options->cpus = ARN_CPUS_MASK;
    options->cpu_mask = ParseCpus(arguments.cpus);
  }
  options->sensors = arguments.stats ? 1 : 0;
  options->max_tokens_per_s = arguments.max_tokens_per_s;
  if (!(std::abs(arguments.thermal_limit) <= 1000)) {
    throw Error(Format("--thermal-limit: %g is not a temperature in degrees Celsius",
                       arguments.thermal_limit));
  }
  options->thermal_limit_mc = static_cast<int32_t>(std::lround(arguments.thermal_limit * 1000));
  options->thermal_headroom = arguments.thermal_headroom;
  options->thermal_duty_percent = arguments.thermal_duty;
  if (!arguments.thermal_zone.empty()) options->thermal_zone = arguments.thermal_zone.c_str();
  if (!arguments.system_root.empty()) options->system_root = arguments.system_root.c_str();
}

DeviceState ReadDevice(const Session& session) {
  DeviceState state;
  state.stats = session.Stats();
  session.Check(arn_session_cpus(session.get(), &state.cpus));
  for (uint32_t i = 0; i < state.stats.n_thermal_zones; ++i) {
    arn_thermal_zone zone = ARN_THERMAL_ZONE_INIT;
    session.Check(arn_session_thermal_zone(session.get(), i, &zone));
    state.zones.push_back(zone);
  }
  return state;
}

std::string CpuList(const uint64_t (&cpus)[ARN_CPU_WORDS]) {
  const auto has = [&](uint32_t cpu) {
    return cpu < 64 * ARN_CPU_WORDS && (cpus[cpu / 64] >> cpu % 64 & 1) != 0;
  };
  std::string list;
  for (uint32_t cpu = 0; cpu < 64 * ARN_CPU_WORDS; ++cpu) {
    if (!has(cpu)) continue;
    uint32_t last = cpu;
    while (has(last + 1)) ++last;
    list += Format(last == cpu ? "%s%u" : "%s%u-%u", list.empty() ? "" : ",", cpu, last);
    cpu = last;
  }
  return list;
}

const char* EnergySourceName(uint32_t source) {
  switch (source) {
    case ARN_ENERGY_RAPL: return "rapl";
    case ARN_ENERGY_BOARD_COUNTER: return "board-counter";
    case ARN_ENERGY_BOARD_POWER: return "board-power";
    case ARN_ENERGY_BATTERY_POWER: return "battery-power";
    case ARN_ENERGY_BATTERY_LEFT: return "battery-left";
    default: return "";
  }
}

std::string DeviceReport(const DeviceState& state) {
  const arn_session_stats_data& s = state.stats;
  std::string text =
      Format("read      weights %s, kv %s\n", HumanBytes(s.weight_bytes_read).c_str(),
             HumanBytes(s.kv_bytes_read).c_str());
  if (s.kv_file_bytes_read + s.kv_file_bytes_written > 0) {
    text += Format("kv file   read %s, written %s, waited %.2f s\n",
                   HumanBytes(s.kv_file_bytes_read).c_str(),
                   HumanBytes(s.kv_file_bytes_written).c_str(), Seconds(s.kv_file_wait_ns));
  }
  if (s.guess_runs > 0) {
    text += Format(
        "guesses   %llu proposed, %llu accepted (%.0f %%), in %llu runs of %llu rows\n",
        static_cast<unsigned long long>(s.guesses_proposed),
        static_cast<unsigned long long>(s.guesses_accepted),
        100.0 * static_cast<double>(s.guesses_accepted) / static_cast<double>(s.guesses_proposed),
        static_cast<unsigned long long>(s.guess_runs),
        static_cast<unsigned long long>(s.guess_runs + s.guesses_proposed));
  }
  if (s.draft_ns > 0) text += Format("draft     %.2f s in the draft model\n", Seconds(s.draft_ns));
  if (state.residency) {
    text += "bundle    " + ResidencyLine(*state.residency) + "\n";
  }
  if (state.cpus.n_threads == 0) {
    text += "cpus      the backend has no threads\n";
  } else {
    const std::string wanted = CpuList(state.cpus.wanted);
    text += Format("cpus      %u threads on %s%s\n", state.cpus.n_threads,
                   CpuList(state.cpus.applied).c_str(),
                   wanted.empty()                 ? ", placed by the system"
                   : state.cpus.is_as_wanted == 1 ? ", as requested"
                                                  : (", NOT on " + wanted).c_str());
  }
  if (s.paced_ns > 0) {
    text += Format("slept     %.2f s, %.2f s of it throttled by temperature\n", Seconds(s.paced_ns),
                   Seconds(s.cooled_ns));
  }
  if (s.energy_source == ARN_ENERGY_NONE) {
    text += "energy    no counter can be read\n";
  } else {
    text += Format("energy    %.3f J in %.2f s (%s, %s)\n", static_cast<double>(s.energy_uj) / 1e6,
                   Seconds(s.energy_ns), EnergySourceName(s.energy_source), s.energy_name);
  }
  if (s.temperature_mc == ARN_NO_TEMPERATURE) {
    text += Format("thermal   none of %u zones can be read\n", s.n_thermal_zones);
  } else {
    text += Format("thermal   %.1f degrees (%s, hottest of %u zones)\n", s.temperature_mc / 1000.0,
                   state.zones[s.hottest_zone].name, s.n_thermal_zones);
  }
  if (s.thermal_headroom >= 0) {
    text += Format("headroom  %.2f\n", static_cast<double>(s.thermal_headroom));
  }
  return text;
}

void WriteOptional(const char* key, bool has_value, double value, JsonWriter* json) {
  json->Key(key).Number(has_value ? value : std::numeric_limits<double>::quiet_NaN());
}

void WriteDevice(const DeviceState& state, JsonWriter* json) {
  const arn_session_stats_data& s = state.stats;
  json->Key("device").BeginObject();
  json->Key("weight_bytes_read").Uint(s.weight_bytes_read);
  json->Key("kv_bytes_read").Uint(s.kv_bytes_read);
  json->Key("guesses").BeginObject();
  json->Key("proposed").Uint(s.guesses_proposed);
  json->Key("accepted").Uint(s.guesses_accepted);
  json->Key("runs").Uint(s.guess_runs);
  json->Key("draft_s").Number(Seconds(s.draft_ns));
  json->EndObject();
  json->Key("kv_file").BeginObject();
  json->Key("bytes_read").Uint(s.kv_file_bytes_read);
  json->Key("bytes_written").Uint(s.kv_file_bytes_written);
  json->Key("wait_s").Number(Seconds(s.kv_file_wait_ns));
  json->EndObject();
  if (state.residency) {
    json->Key("bundle").BeginObject();
    json->Key("mapped").Uint(state.residency->mapped_bytes);
    json->Key("copied").Uint(state.residency->copied_bytes);
    json->Key("resident").Uint(state.residency->resident_bytes);
    json->Key("huge").Uint(state.residency->huge_bytes);
    json->Key("locked").Uint(state.residency->locked_bytes);
    json->EndObject();
  }
  json->Key("paced_s").Number(Seconds(s.paced_ns));
  json->Key("cooled_s").Number(Seconds(s.cooled_ns));
  json->Key("cpus").BeginObject();
  json->Key("threads").Uint(state.cpus.n_threads);
  json->Key("wanted").String(CpuList(state.cpus.wanted));
  json->Key("applied").String(CpuList(state.cpus.applied));
  json->Key("as_wanted").Bool(state.cpus.is_as_wanted == 1);
  json->EndObject();
  json->Key("energy_source").String(EnergySourceName(s.energy_source));
  json->Key("energy_name").String(s.energy_name);
  const bool has_energy = s.energy_source != ARN_ENERGY_NONE;
  WriteOptional("energy_j", has_energy, static_cast<double>(s.energy_uj) / 1e6, json);
  WriteOptional("energy_s", has_energy, Seconds(s.energy_ns), json);
  WriteOptional("temperature_c", s.temperature_mc != ARN_NO_TEMPERATURE, s.temperature_mc / 1000.0,
                json);
  WriteOptional("headroom", s.thermal_headroom >= 0, static_cast<double>(s.thermal_headroom), json);
  json->Key("zones").BeginArray();
  for (const arn_thermal_zone& zone : state.zones) {
    json->BeginObject().Key("name").String(zone.name);
    WriteOptional("temperature_c", zone.millicelsius != ARN_NO_TEMPERATURE,
                  zone.millicelsius / 1000.0, json);
    json->EndObject();
  }
  json->EndArray().EndObject();
}

}  // namespace arn::tool
