// Device options, and the state of the device that a session reports.
#pragma once

#include <arenite/arenite.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/arenite/json.h"
#include "tools/arenite/model.h"

namespace CLI {
class App;
}  // namespace CLI

namespace arn::tool {

struct DeviceArguments {
  std::string cpus = "auto";
  float max_tokens_per_s = 0;
  double thermal_limit = 0;  // degrees
  float thermal_headroom = 0;
  uint32_t thermal_duty = 0;
  std::string thermal_zone;  // must outlive the options made from it
  std::string system_root;   // must outlive the options made from it
  bool stats = false;
};
void AddDeviceOptions(CLI::App* app, DeviceArguments* arguments);
// Throws Error.
void ApplyDeviceOptions(const DeviceArguments& arguments, arn_session_options* options);

// Snapshot of a session, its model and its device.
struct DeviceState {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  arn_session_cpus_data cpus = ARN_SESSION_CPUS_INIT;
  std::vector<arn_thermal_zone> zones;
  std::optional<arn_residency> residency;  // Model::Residency(); set by the caller if needed
};
DeviceState ReadDevice(const Session& session);

// Returns "0-3,7" for a set of CPUs; "" for none.
std::string CpuList(const uint64_t (&cpus)[ARN_CPU_WORDS]);
// Returns "rapl", "battery-power" ... for ARN_ENERGY_...; "" for none.
const char* EnergySourceName(uint32_t source);
// Returns lines for people.
std::string DeviceReport(const DeviceState& state);
// Writes the key "device": an object. Energy in joules, temperatures in degrees; null if unknown.
void WriteDevice(const DeviceState& state, JsonWriter* json);
// Writes one number, or null if has_value is false.
void WriteOptional(const char* key, bool has_value, double value, JsonWriter* json);

}  // namespace arn::tool
