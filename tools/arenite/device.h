// The device: options that are about it, and what a session says of it.
#pragma once

#include <arenite/arenite.h>

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/arenite/json.h"
#include "tools/arenite/model.h"

namespace arn::tool {

struct DeviceArguments {
  std::string cpus = "auto";
  float max_tokens_per_s = 0;
  double heat_limit = 0;  // degrees
  float heat_headroom = 0;
  uint32_t heat_duty = 0;
  std::string heat_zone;    // outlives the options made of it
  std::string system_root;  // the same
  bool stats = false;
};
void AddDeviceOptions(CLI::App* app, DeviceArguments* arguments);
// Throws Error.
void ApplyDeviceOptions(const DeviceArguments& arguments, arn_session_options* options);

// What a session says of itself and of its device at one time.
struct DeviceState {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  arn_session_cpus_data cpus = ARN_SESSION_CPUS_INIT;
  std::vector<arn_thermal_zone> zones;
};
DeviceState ReadDevice(const Session& session);

// "0-3,7" of a set of CPUs; "" of none.
std::string CpuList(const uint64_t (&cpus)[ARN_CPU_WORDS]);
// "rapl", "battery-power" ... of ARN_ENERGY_...; "" of none.
const char* EnergySourceName(uint32_t source);
// Lines for people.
std::string DeviceReport(const DeviceState& state);
// The key "device": an object. Energy in joules, temperatures in degrees; null where not known.
void WriteDevice(const DeviceState& state, JsonWriter* json);
// One number of it, or null where has_value is false.
void WriteOptional(const char* key, bool has_value, double value, JsonWriter* json);

}  // namespace arn::tool
