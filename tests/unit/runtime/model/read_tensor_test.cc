// Matrices in the device's layout as a bundle stores them: layouts, sizes and places that cannot be
// are refused by the tensor's name.
#include "runtime/model/read_tensor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "kernels/contract/code_type.h"
#include "kernels/pack/pack.h"

namespace arn {
namespace {

struct Stored {
  DType dtype = DType::kInt4;
  WeightLayout layout = {WeightOrder::kDeviceRows};
  bool is_vector = false;
  uint32_t rows = 5, cols = 40;
  uint64_t offset = 256, bytes = 0;
};

Stored Good(DType dtype) {
  Stored good;
  good.dtype = dtype;
  EXPECT_TRUE(PackedBytes(dtype, good.layout, good.rows, good.cols, &good.bytes));
  return good;
}

// Writes the tensor and reads it back from a segment area of 4,096 bytes.
Status ReadBack(const Stored& stored, Weight* out, Diag* diag) {
  alignas(64) static const std::byte area[4096] = {};
  Bundle bundle;
  bundle.segments = {area, sizeof area};
  flatbuffers::FlatBufferBuilder builder;
  const fbs::Layout layout(static_cast<fbs::WeightOrder>(stored.layout.order), stored.layout.nr,
                           stored.layout.kr, stored.layout.sr, stored.layout.planes);
  const fbs::Segment segment(stored.offset, stored.bytes, 0);
  builder.Finish(fbs::CreateTensor(builder, builder.CreateString("it"),
                                   static_cast<fbs::DType>(stored.dtype), &layout, stored.is_vector,
                                   stored.rows, stored.cols, &segment));
  return ReadTensor(bundle, *flatbuffers::GetRoot<fbs::Tensor>(builder.GetBufferPointer()), out,
                    diag);
}

TEST(ReadTensorTest, DeviceRows_OfEachType_AreRead) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4}) {
    Weight weight;
    Diag diag;
    ASSERT_EQ(Status::kOk, ReadBack(Good(dtype), &weight, &diag)) << diag.text();
    EXPECT_EQ(WeightOrder::kDeviceRows, weight.layout.order);
    EXPECT_EQ(5u, weight.rows);
    EXPECT_EQ(Good(dtype).bytes, weight.bytes);
  }
}

TEST(ReadTensorTest, DeviceRows_ThatCannotBe_AreRefusedByName) {
  const auto expect = [](Stored bad, Status status, const char* reason) {
    Weight weight;
    Diag diag;
    EXPECT_EQ(status, ReadBack(bad, &weight, &diag)) << reason;
    EXPECT_NE(std::string::npos, std::string(diag.text()).find(reason)) << diag.text();
    EXPECT_NE(std::string::npos, std::string(diag.text()).find("it")) << diag.text();
  };
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4}) {
    SCOPED_TRACE(DTypeName(dtype));
    Stored bad = Good(dtype);
    --bad.bytes;
    expect(bad, Status::kBadBundle, "the segment has");
    bad.bytes += 2;
    expect(bad, Status::kBadBundle, "the segment has");
    bad = Good(dtype);
    ++bad.rows;
    expect(bad, Status::kBadBundle, "the segment has");
    bad = Good(dtype);
    bad.cols += 32;
    expect(bad, Status::kBadBundle, "the segment has");
    bad = Good(dtype);
    bad.layout.nr = 16;
    expect(bad, Status::kBadBundle, "does not exist");
    bad = Good(dtype);
    bad.layout.planes = 2;
    expect(bad, Status::kBadBundle, "does not exist");
    bad = Good(dtype);
    bad.is_vector = true;
    expect(bad, Status::kBadBundle, "a vector is one f32 row");
    bad = Good(dtype);
    bad.offset = 4096 - 64;
    expect(bad, Status::kBundleTruncated, "");
    bad = Good(dtype);
    bad.offset = 257;
    expect(bad, Status::kBadBundle, "");
    bad = Good(dtype);
    bad.layout.order = static_cast<WeightOrder>(kWeightOrderCount);
    expect(bad, Status::kUnsupported, "is not known to this version");
  }
  if (!kHasLowBits) return;
  Stored bad = Good(DType::kInt8);
  bad.dtype = DType::kInt3;
  expect(bad, Status::kBadBundle, "does not exist");
}

}  // namespace
}  // namespace arn
