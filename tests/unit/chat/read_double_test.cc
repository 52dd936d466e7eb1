#include "runtime/chat/read_double.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>

namespace arn::chat {
namespace {

// Compares with std::from_chars if the compiler has it for double.
void ExpectAsStandard(const std::string& text) {
  double value = 7.0, expected = 7.0;
  const char* const end = text.data() + text.size();
  const auto got = ReadDoubleByStrtod(text.data(), end, &value);
  const auto standard = ReadDouble(text.data(), end, &expected);
  EXPECT_EQ(got.ptr - text.data(), standard.ptr - text.data()) << text;
  EXPECT_EQ(got.ec, standard.ec) << text;
  EXPECT_EQ(std::bit_cast<uint64_t>(value), std::bit_cast<uint64_t>(expected)) << text;
}

TEST(ReadDouble, Forms_AreReadAsByTheStandardLibrary) {
  for (const char* text : {"0",
                           "-0",
                           "1",
                           "-1.5",
                           "3.",
                           "12.75e-3",
                           "1E+2x",
                           "1e",
                           "1e+",
                           "007.5",
                           "0.1",
                           "123456789012345678901234567890",
                           "5e-324",
                           "4.9e-324",
                           "2.2250738585072014e-308",
                           "1.7976931348623157e308",
                           "1e999",
                           "-1e999",
                           "1e-999",
                           "",
                           "-",
                           "+1",
                           "x",
                           ".",
                           ".5",
                           "-.25e1",
                           ".e5",
                           "5.x",
                           "-1e-999",
                           "e5",
                           "0x10",
                           "1_000",
                           "0e99999999999",
                           "9007199254740993",
                           "9007199254740992.5",
                           "1.0e0000000000001"}) {
    ExpectAsStandard(text);
  }
}

TEST(ReadDouble, ManyDigits_RoundByAllOfThem) {
  // Halfway between two doubles, except for a digit a thousand places later.
  const std::string half = "9007199254740993.";
  ExpectAsStandard(half + std::string(1000, '0'));
  ExpectAsStandard(half + std::string(1000, '0') + "1");
  ExpectAsStandard("0." + std::string(400, '0') + "1" + std::string(900, '7') + "e390");
  ExpectAsStandard(std::string(300, '9') + std::string(900, '1') + "e-1000");
}

// The sign of the exponent does not tell which it is.
TEST(ReadDouble, NumbersBeyondDoubles_AreInfiniteOrZero) {
  const std::string zeros(400, '0');
  const struct {
    std::string text;
    double value;
  } cases[] = {{"1e999", HUGE_VAL},
               {"-1e999", -HUGE_VAL},
               {"1e-999", 0.0},
               {"-1e-999", -0.0},
               {"0." + zeros + "1", 0.0},
               {"-0." + zeros + "1e+5", -0.0},
               {"1" + zeros + ".0", HUGE_VAL},
               {"-1" + zeros + "e-5", -HUGE_VAL}};
  for (const auto& c : cases) {
    for (const auto read : {ReadDouble, ReadDoubleByStrtod}) {
      double value = 7.0;
      const char* const end = c.text.data() + c.text.size();
      const auto result = read(c.text.data(), end, &value);
      EXPECT_EQ(result.ec, std::errc::result_out_of_range) << c.text;
      EXPECT_EQ(result.ptr, end) << c.text;
      EXPECT_EQ(std::bit_cast<uint64_t>(value), std::bit_cast<uint64_t>(c.value)) << c.text;
    }
  }
}

TEST(ReadDouble, AnyDouble_ComesBack) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(rng());
    if (value != value || value - value != 0.0) continue;
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    double back = 0.0;
    ASSERT_EQ(ReadDoubleByStrtod(text, text + std::char_traits<char>::length(text), &back).ec,
              std::errc());
    EXPECT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(value)) << text;
  }
}

}  // namespace
}  // namespace arn::chat
