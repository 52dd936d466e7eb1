// Thermal zones and headroom on fake devices.
#include "platform/os/thermal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "platform/os/system_file.h"
#include "tests/support/fake_system.h"

namespace arn {
namespace {

using test::FakeSystem;

TEST(SystemFile_ReadText, IsTheFirstLine) {
  FakeSystem fake;
  char text[8];
  fake.Write("a", "cpu-0\t \nmore\n");
  EXPECT_TRUE(ReadSystemText(fake.root(), "/sys/a", text, sizeof text));
  EXPECT_STREQ("cpu-0", text);
  fake.Write("a", "much longer than that");
  EXPECT_TRUE(ReadSystemText(fake.root(), "/sys/a", text, sizeof text));
  EXPECT_STREQ("much lo", text);
  fake.Write("a", "\x01\xFFz");
  EXPECT_TRUE(ReadSystemText(fake.root(), "/sys/a", text, sizeof text));
  EXPECT_STREQ("??z", text);
  fake.Write("a", "\nsecond");
  EXPECT_FALSE(ReadSystemText(fake.root(), "/sys/a", text, sizeof text));
  EXPECT_STREQ("", text);
  fake.MakeUnreadable("a");
  EXPECT_FALSE(ReadSystemText(fake.root(), "/sys/a", text, sizeof text));
  EXPECT_FALSE(ReadSystemText(fake.root(), "/sys/none", text, sizeof text));
  const std::string deep(kMaxSystemRoot + kMaxSystemPath, 'x');
  EXPECT_FALSE(ReadSystemText(deep.c_str(), "/sys/a", text, sizeof text));
}

TEST(SystemFile_ReadNumber, TakesWholeNumbersOnly) {
  FakeSystem fake;
  const auto read = [&](const std::string& text) {
    fake.Write("n", text);
    int64_t value = -77;
    return ReadSystemNumber(fake.root(), "/sys/n", &value) ? std::to_string(value) : "none";
  };
  EXPECT_EQ("0", read("0"));
  EXPECT_EQ("1024", read("1024\n"));
  EXPECT_EQ("-41000", read("-41000\n"));
  EXPECT_EQ("9223372036854775807", read("9223372036854775807"));
  for (const char* none : {"9223372036854775808", "99999999999999999999999999999999999999", "",
                           "\n", "-", "4.5", "12 mV", "0x10", "nan", "--3"}) {
    EXPECT_EQ("none", read(none)) << none;
  }
}

TEST(ThermalZones_Find, TakesThoseOfTheirNameWhateverTheirNumbers) {
  FakeSystem fake;
  fake.Zone(0, "cpu-0-0", "41000");
  fake.Zone(3, "battery", "30500");
  fake.Zone(15, "a-name-that-is-longer-than-there-is-room-for", "35000");
  ThermalZones zones;
  zones.Find(fake.root(), nullptr);
  ASSERT_EQ(3u, zones.count());
  EXPECT_STREQ("cpu-0-0", zones.name(0));
  EXPECT_STREQ("battery", zones.name(1));
  EXPECT_STREQ("a-name-that-is-longer-t", zones.name(2));
  EXPECT_EQ(41000, zones.Read(0));
  EXPECT_EQ(30500, zones.Read(1));
  zones.Find(fake.root(), "batt");
  ASSERT_EQ(1u, zones.count());
  EXPECT_EQ(30500, zones.Read(0));
  zones.Find(fake.root(), "gpu");
  EXPECT_EQ(0u, zones.count());
  zones.Find("/nonexistent", nullptr);
  EXPECT_EQ(0u, zones.count());
  zones.Find(std::string(kMaxSystemRoot, 'x').c_str(), nullptr);
  EXPECT_EQ(0u, zones.count());
}

TEST(ThermalZones_Find, MoreThanThereIsRoomFor_AreTheFirst) {
  FakeSystem fake;
  for (uint32_t i = 0; i < ThermalZones::kMaxZones + 3; ++i) fake.Zone(i, "z", "30000");
  ThermalZones zones;
  zones.Find(fake.root(), nullptr);
  EXPECT_EQ(ThermalZones::kMaxZones, zones.count());
}

TEST(ThermalZones_Read, WhatCannotBe_IsNoTemperature) {
  FakeSystem fake;
  fake.Zone(0, "cpu", "41000");
  ThermalZones zones;
  zones.Find(fake.root(), nullptr);
  ASSERT_EQ(1u, zones.count());
  for (const char* absurd :
       {"-273150", "-40001", "200001", "2147483647000", "0", "45", "-999", "hot", ""}) {
    fake.Write(FakeSystem::ZonePath(0, "temp"), absurd);
    EXPECT_EQ(kNoTemperature, zones.Read(0)) << absurd;
  }
  fake.Write(FakeSystem::ZonePath(0, "temp"), "-12000");
  EXPECT_EQ(-12000, zones.Read(0)) << "a winter's day";
  fake.MakeUnreadable(FakeSystem::ZonePath(0, "temp"));
  EXPECT_EQ(kNoTemperature, zones.Read(0));
  fake.Remove(FakeSystem::ZonePath(0, ""));
  EXPECT_EQ(kNoTemperature, zones.Read(0)) << "gone";
  fake.Zone(0, "cpu", "42000");
  EXPECT_EQ(42000, zones.Read(0)) << "back again";
}

TEST(ThermalHeadroom_Open, ALibraryThatHasIt_IsRead) {
  ThermalHeadroom headroom;
  ASSERT_TRUE(headroom.Open(ARN_FAKE_THERMAL));
  EXPECT_TRUE(headroom.is_open());
  EXPECT_FLOAT_EQ(0.6f, headroom.Read());
  EXPECT_FLOAT_EQ(0.7f, headroom.Read());
  EXPECT_TRUE(std::isnan(headroom.Read()));
  EXPECT_FLOAT_EQ(0.9f, headroom.Read());
  headroom.Close();
  EXPECT_FALSE(headroom.is_open());
  EXPECT_TRUE(std::isnan(headroom.Read()));
  headroom.Close();
}

TEST(ThermalHeadroom_Open, NoneOrOneWithoutIt_IsFalse) {
  ThermalHeadroom headroom;
  EXPECT_FALSE(headroom.Open(nullptr));
  EXPECT_FALSE(headroom.Open("libarn_there_is_no_such.so"));
  EXPECT_FALSE(headroom.Open("libm.so.6"));
  EXPECT_FALSE(headroom.is_open());
  EXPECT_TRUE(std::isnan(headroom.Read()));
}

}  // namespace
}  // namespace arn
