// Energy readings on fake devices.
#include "platform/os/energy.h"

#include <gtest/gtest.h>

#include "tests/support/fake_system.h"

namespace arn {
namespace {

using test::FakeSystem;

constexpr uint64_t kSecond = 1000000000;

class Energy : public testing::Test {
 protected:
  void Package(uint32_t n, const std::string& name, int64_t energy_uj, int64_t range = 1 << 30) {
    const std::string at = "class/powercap/intel-rapl:" + std::to_string(n) + "/";
    fake_.Write(at + "name", name + "\n");
    fake_.Write(at + "energy_uj", energy_uj);
    fake_.Write(at + "max_energy_range_uj", range);
  }
  void Board(uint32_t n, const std::string& name, const std::string& file, int64_t value) {
    const std::string at = "class/hwmon/hwmon" + std::to_string(n) + "/";
    fake_.Write(at + "name", name + "\n");
    fake_.Write(at + file, value);
  }
  void Battery(const std::string& file, const std::string& text) {
    fake_.Write("class/power_supply/BAT0/" + file, text);
  }
  EnergySource Find() {
    meter_.Find(fake_.root());
    return meter_.source();
  }

  FakeSystem fake_;
  EnergyMeter meter_;
};

TEST_F(Energy, Nothing_CountsNothing) {
  EXPECT_EQ(EnergySource::kNone, Find());
  EXPECT_STREQ("", meter_.name());
  meter_.Sample(kSecond);
  meter_.Sample(2 * kSecond);
  EXPECT_EQ(0u, meter_.microjoules());
  EXPECT_EQ(0u, meter_.counted_ns());
  meter_.Find(std::string(kMaxSystemRoot, 'x').c_str());
  EXPECT_EQ(EnergySource::kNone, meter_.source());
}

TEST_F(Energy, Rapl_AddsPackagesAndNothingElse) {
  Package(0, "package-0", 1000000);
  Package(1, "package-1", 500);
  Package(2, "psys", 9);
  ASSERT_EQ(EnergySource::kRapl, Find());
  EXPECT_STREQ("package-0", meter_.name());
  meter_.Sample(10 * kSecond);
  EXPECT_EQ(0u, meter_.microjoules());
  Package(0, "package-0", 3000000);
  Package(1, "package-1", 1000500);
  Package(2, "psys", 99999999);
  meter_.Sample(12 * kSecond);
  EXPECT_EQ(3000000u, meter_.microjoules());
  EXPECT_EQ(2 * kSecond, meter_.counted_ns());
  EXPECT_EQ(1500000u, meter_.microwatts());
  meter_.Sample(12 * kSecond);
  EXPECT_EQ(3000000u, meter_.microjoules()) << "no time has passed";
  meter_.Reset();
  meter_.Sample(13 * kSecond);
  EXPECT_EQ(0u, meter_.microjoules());
}

TEST_F(Energy, Rapl_ThatBeginsAgain_IsFollowed) {
  Package(0, "package-0", 999000, 1000000);
  ASSERT_EQ(EnergySource::kRapl, Find());
  meter_.Sample(kSecond);
  Package(0, "package-0", 4000, 1000000);
  meter_.Sample(2 * kSecond);
  EXPECT_EQ(5000u, meter_.microjoules());
}

TEST_F(Energy, Rapl_JumpsAndHolesAreNotCounted) {
  Package(0, "package-0", 1000, 0);
  ASSERT_EQ(EnergySource::kRapl, Find());
  meter_.Sample(kSecond);
  Package(0, "package-0", 500, 0);
  meter_.Sample(2 * kSecond);
  EXPECT_EQ(0u, meter_.counted_ns()) << "back, and nobody says where it begins again";
  Package(0, "package-0", int64_t{3000} * 1000000, 0);
  meter_.Sample(3 * kSecond);
  EXPECT_EQ(0u, meter_.counted_ns()) << "3 kW";
  fake_.MakeUnreadable("class/powercap/intel-rapl:0/energy_uj");
  meter_.Sample(4 * kSecond);
  Package(0, "package-0", int64_t{3001} * 1000000, 0);
  meter_.Sample(5 * kSecond);
  EXPECT_EQ(0u, meter_.counted_ns()) << "it was away in between";
  Package(0, "package-0", int64_t{3002} * 1000000, 0);
  meter_.Sample(6 * kSecond);
  EXPECT_EQ(1000000u, meter_.microjoules());
  EXPECT_EQ(kSecond, meter_.counted_ns());
}

TEST_F(Energy, Order_IsThatOfTheSources) {
  Battery("type", "Battery");
  Battery("status", "Discharging");
  Battery("power_now", "4000000");
  EXPECT_EQ(EnergySource::kBatteryPower, Find());
  EXPECT_STREQ("BAT0", meter_.name());
  Board(0, "amdgpu", "power1_input", 9000000);
  EXPECT_EQ(EnergySource::kBatteryPower, Find()) << "not of the graphics card";
  Board(2, "ina226", "power1_input", 3000000);
  EXPECT_EQ(EnergySource::kHwmonPower, Find());
  EXPECT_STREQ("ina226", meter_.name());
  Board(5, "scmi_sensors", "energy1_input", 12);
  EXPECT_EQ(EnergySource::kHwmonEnergy, Find());
  Package(0, "package-0", 5);
  EXPECT_EQ(EnergySource::kRapl, Find());
  fake_.MakeUnreadable("class/powercap/intel-rapl:0/energy_uj");
  EXPECT_EQ(EnergySource::kHwmonEnergy, Find()) << "for root only";
}

TEST_F(Energy, BoardCounter_IsCounted) {
  Board(1, "scmi_sensors", "energy1_input", 7000);
  ASSERT_EQ(EnergySource::kHwmonEnergy, Find());
  meter_.Sample(kSecond);
  Board(1, "scmi_sensors", "energy1_input", 9000);
  meter_.Sample(3 * kSecond);
  EXPECT_EQ(2000u, meter_.microjoules());
  EXPECT_EQ(1000u, meter_.microwatts());
}

TEST_F(Energy, BoardPower_RunsStraightBetweenSamples) {
  Board(0, "ina226", "power1_input", 2000000);
  ASSERT_EQ(EnergySource::kHwmonPower, Find());
  meter_.Sample(kSecond);
  EXPECT_EQ(2000000u, meter_.microwatts());
  Board(0, "ina226", "power1_input", 4000000);
  meter_.Sample(kSecond + kSecond / 2);
  EXPECT_EQ(1500000u, meter_.microjoules());
  meter_.Sample(60 * kSecond);
  EXPECT_EQ(1500000u, meter_.microjoules()) << "who knows what was in between";
  EXPECT_EQ(kSecond / 2, meter_.counted_ns());
  Board(0, "ina226", "power1_input", int64_t{5000} * 1000000);
  meter_.Sample(61 * kSecond);
  EXPECT_EQ(0u, meter_.microwatts()) << "5 kW";
  EXPECT_EQ(kSecond / 2, meter_.counted_ns());
}

TEST_F(Energy, Battery_CurrentTimesVoltage_WhateverItsSign) {
  for (const char* current : {"500000", "-500000"}) {
    Battery("type", "Battery");
    Battery("status", "Discharging");
    Battery("current_now", current);
    Battery("voltage_now", "4000000");
    fake_.Write("class/power_supply/usb/type", "USB");
    fake_.Write("class/power_supply/usb/power_now", "99");
    ASSERT_EQ(EnergySource::kBatteryPower, Find());
    meter_.Sample(kSecond);
    meter_.Sample(2 * kSecond);
    EXPECT_EQ(2000000u, meter_.microjoules()) << current;
    Battery("status", "Charging");
    meter_.Sample(3 * kSecond);
    Battery("status", "Discharging");
    meter_.Sample(4 * kSecond);
    EXPECT_EQ(2000000u, meter_.microjoules()) << "what charges it is not what is used";
    Battery("voltage_now", "9223372036854775807");
    meter_.Sample(5 * kSecond);
    EXPECT_EQ(kSecond, meter_.counted_ns());
    fake_.Remove("class/power_supply/BAT0");
    meter_.Sample(6 * kSecond);
    EXPECT_EQ(2000000u, meter_.microjoules()) << "taken out";
  }
}

TEST_F(Energy, Battery_WhatIsLeft_InCoarseSteps) {
  Battery("type", "Battery");
  Battery("status", "Discharging");
  Battery("energy_now", "30000000");
  ASSERT_EQ(EnergySource::kBatteryEnergy, Find());
  meter_.Sample(kSecond);
  meter_.Sample(2 * kSecond);
  EXPECT_EQ(0u, meter_.microjoules());
  Battery("energy_now", "29990000");
  meter_.Sample(3 * kSecond);
  EXPECT_EQ(36000000u, meter_.microjoules()) << "10 mWh";
  Battery("energy_now", "10000000");
  meter_.Sample(4 * kSecond);
  EXPECT_EQ(36000000u, meter_.microjoules()) << "20 Wh in a second";
  Battery("status", "Full");
  Battery("energy_now", "9990000");
  meter_.Sample(5 * kSecond);
  EXPECT_EQ(36000000u, meter_.microjoules());
}

}  // namespace
}  // namespace arn
