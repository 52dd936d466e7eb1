#include "platform/base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "platform/base/diag.h"
#include "platform/base/result.h"

namespace arn {
namespace {

constexpr Status kAll[] = {Status::kOk,
                           Status::kInternal,
                           Status::kBadState,
                           Status::kCancelled,
                           Status::kBadArgument,
                           Status::kUnsupported,
                           Status::kBadToken,
                           Status::kBufferTooSmall,
                           Status::kTemplateError,
                           Status::kContextFull,
                           Status::kOutOfMemory,
                           Status::kNotFound,
                           Status::kIo,
                           Status::kDiskFull,
                           Status::kBadBundle,
                           Status::kBundleVersion,
                           Status::kBundleTruncated,
                           Status::kHashMismatch,
                           Status::kBadSave,
                           Status::kSaveMismatch,
                           Status::kBadSignature,
                           Status::kDevice,
                           Status::kDeviceLost};

TEST(Status_Name, EveryStatus_HasItsOwn) {
  std::set<std::string> names;
  for (Status status : kAll) names.insert(StatusName(status));
  EXPECT_EQ(std::size(kAll), names.size());
  EXPECT_EQ(0u, names.count("unknown status"));
  EXPECT_STREQ("unknown status", StatusName(static_cast<Status>(0xffff)));
}

Result<std::unique_ptr<int>> MakeInt(bool good) {
  if (!good) return Status::kNotFound;
  return std::make_unique<int>(5);
}

Status Use(bool good, int* out) {
  ARN_ASSIGN(std::unique_ptr<int> value, MakeInt(good));
  *out = *value;
  return Status::kOk;
}

TEST(Result_Assign, ValueOrStatus_Propagates) {
  int out = 0;
  EXPECT_EQ(Status::kOk, Use(true, &out));
  EXPECT_EQ(5, out);
  EXPECT_EQ(Status::kNotFound, Use(false, &out));
}

TEST(Result_FromStatus, Ok_IsInternal) {
  Result<int> result(Status::kOk);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(Status::kInternal, result.status());
}

TEST(Diag_Fail, LongText_IsCut) {
  Diag diag;
  const std::string text(2000, 'x');
  EXPECT_EQ(Status::kIo, diag.Fail(Status::kIo, "%s", text.c_str()));
  EXPECT_EQ(Diag::kCapacity - 1, std::string(diag.text()).size());
  diag.Clear();
  EXPECT_STREQ("", diag.text());
}

}  // namespace
}  // namespace arn
