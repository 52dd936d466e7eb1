#include "runtime/constrain/json_schema/decimal.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace arn::json_schema {
namespace {

class DecimalTest : public testing::Test {
 protected:
  Decimal Parse(const char* text) {
    Decimal value;
    EXPECT_EQ(Status::kOk, ParseDecimal({text, std::strlen(text)}, &arena_, &value)) << text;
    return value;
  }
  std::string Plain(const char* text) {
    StringView plain;
    EXPECT_EQ(Status::kOk, PlainText(Parse(text), &arena_, &plain));
    return {plain.data, plain.size};
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 16);
  Arena arena_{{memory_.data(), memory_.size()}};
};

TEST_F(DecimalTest, PlainTextHasNoExponentAndNoZerosThatMeanNothing) {
  const char* cases[][2] = {{"0", "0"},          {"-0.00e5", "0"},  {"1", "1"},
                            {"10", "10"},        {"1.50", "1.5"},   {"-12.5e1", "-125"},
                            {"1e3", "1000"},     {"1E-3", "0.001"}, {"123e-2", "1.23"},
                            {"0.01e+2", "1"},    {"100e-2", "1"},   {"-0.5", "-0.5"},
                            {"0.00100", "0.001"}};
  for (const auto& c : cases) EXPECT_EQ(c[1], Plain(c[0])) << c[0];
}

TEST_F(DecimalTest, ComparesAsNumbers) {
  const char* ascending[] = {"-1e2", "-10", "-9.5", "-0.001", "0",     "1e-3", "0.01", "0.1",
                             "0.11", "1",   "9",    "10",     "10.01", "99",   "100"};
  const size_t n = sizeof(ascending) / sizeof(ascending[0]);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      const int order = Compare(Parse(ascending[i]), Parse(ascending[k]));
      EXPECT_EQ(i < k, order < 0) << ascending[i] << " " << ascending[k];
      EXPECT_EQ(i == k, order == 0) << ascending[i] << " " << ascending[k];
    }
  }
}

TEST_F(DecimalTest, CountsAreNonNegativeIntegers) {
  bool is_count = false;
  EXPECT_EQ(12u, ToCount(Parse("1.2e1"), &is_count));
  EXPECT_TRUE(is_count);
  EXPECT_EQ(0u, ToCount(Parse("-0"), &is_count));
  EXPECT_TRUE(is_count);
  EXPECT_EQ(UINT64_MAX, ToCount(Parse("1e30"), &is_count));
  EXPECT_TRUE(is_count);
  ToCount(Parse("-1"), &is_count);
  EXPECT_FALSE(is_count);
  ToCount(Parse("1.5"), &is_count);
  EXPECT_FALSE(is_count);
}

TEST_F(DecimalTest, RefusesNumbersOfTooManyDigits) {
  Decimal value;
  for (const char* text : {"1e1001", "1e-1001", "1e99999999999999999999"}) {
    EXPECT_EQ(Status::kUnsupported, ParseDecimal({text, std::strlen(text)}, &arena_, &value));
  }
  EXPECT_EQ(Status::kOk, ParseDecimal("1e999", &arena_, &value));
  EXPECT_EQ(Status::kOk, ParseDecimal("0e99999999999999999999", &arena_, &value));
  EXPECT_TRUE(value.is_zero());
}

}  // namespace
}  // namespace arn::json_schema
