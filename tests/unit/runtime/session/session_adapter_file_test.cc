// Adapter files are untrusted: damage and inconsistency are refused by name, and never read past
// the file.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "runtime/bundle/bundle.h"
#include "tests/support/tiny_adapter.h"

namespace arn::test {
namespace {

using testing::HasSubstr;

class AdapterFileTest : public testing::Test {
 protected:
  void ExpectRefused(const std::vector<uint8_t>& file, arn_status expected,
                     const std::string& part) {
    const AdapterFile on_disk(file);
    arn_status status = ARN_OK;
    std::string error;
    EXPECT_EQ(nullptr, on_disk.Open(model_.get(), &status, &error));
    EXPECT_EQ(expected, status) << arn_status_name(status) << ": " << error;
    EXPECT_THAT(error, HasSubstr(part));
    EXPECT_THAT(error, HasSubstr(on_disk.path()));
  }
  void ExpectRefusedEdit(const std::function<void(TinyChange* first)>& edit, arn_status expected,
                         const std::string& part) {
    TinyAdapter options;
    options.edit = [&](std::vector<TinyChange>* changes) { edit(&changes->front()); };
    ExpectRefused(MakeTinyAdapter(base_, options), expected, part);
  }

  const BundleBytes base_ = MakeTinyBundle(TinyBundle());
  const ModelPtr model_ = OpenBytes(base_);
  const std::vector<uint8_t> good_ = MakeTinyAdapter(base_);
};

TEST_F(AdapterFileTest, OtherBundles_AreRefused) {
  ExpectRefused(std::vector<uint8_t>(base_.data(), base_.data() + base_.size()), ARN_BAD_BUNDLE,
                "no adapter, but a model");
  TinyAdapter options;
  options.hash_change = 1;
  ExpectRefused(MakeTinyAdapter(base_, options), ARN_BAD_BUNDLE, "base_hash");
  ExpectRefused({'G', 'G', 'U', 'F'}, ARN_BAD_BUNDLE, "GGUF");
  const AdapterFile file(good_);
  arn_model* model = nullptr;
  char error[256] = "";
  EXPECT_EQ(ARN_BAD_BUNDLE, arn_model_open(file.path(), nullptr, error, sizeof error, &model));
  EXPECT_THAT(error, HasSubstr("an adapter, not a model"));
}

TEST_F(AdapterFileTest, MissingFile_IsNamed) {
  arn_adapter* adapter = nullptr;
  char error[256] = "";
  EXPECT_EQ(ARN_NOT_FOUND, arn_adapter_open(model_.get(), "/nonexistent/a.arn", nullptr, error,
                                            sizeof error, &adapter));
  EXPECT_THAT(error, HasSubstr("/nonexistent/a.arn"));
}

TEST_F(AdapterFileTest, WrongShapes_AreNamed) {
  ExpectRefusedEdit([](TinyChange* c) { c->tensor = 10000; }, ARN_BAD_BUNDLE, "tensor 10000");
  ExpectRefusedEdit([](TinyChange* c) { ++c->rows; }, ARN_BAD_BUNDLE, "layers.0.qkv");
  ExpectRefusedEdit([](TinyChange* c) { --c->cols; }, ARN_BAD_BUNDLE, "layers.0.qkv");
  ExpectRefusedEdit([](TinyChange* c) { c->rank = 0; }, ARN_BAD_BUNDLE, "rank 0");
  ExpectRefusedEdit([](TinyChange* c) { c->rank = 1u << 20; }, ARN_BAD_BUNDLE, "rank 1048576");
  ExpectRefusedEdit([](TinyChange* c) { c->rank += 16; }, ARN_BAD_BUNDLE, "the segment has");
  ExpectRefusedEdit([](TinyChange* c) { c->dtype = fbs::DType::Bf16; }, ARN_UNSUPPORTED, "type 2");
  ExpectRefusedEdit([](TinyChange* c) { c->dtype = static_cast<fbs::DType>(99); }, ARN_UNSUPPORTED,
                    "type 99");
  ExpectRefusedEdit([](TinyChange* c) { c->data.pop_back(); }, ARN_BAD_BUNDLE, "the segment has");
  ExpectRefusedEdit([](TinyChange* c) { c->data.push_back(0); }, ARN_BAD_BUNDLE, "the segment has");
  ExpectRefusedEdit([](TinyChange* c) { c->blocks.clear(); }, ARN_BAD_BUNDLE, "0 blocks");
  TinyAdapter twice;
  twice.edit = [](std::vector<TinyChange>* changes) { (*changes)[1] = (*changes)[0]; };
  ExpectRefused(MakeTinyAdapter(base_, twice), ARN_BAD_BUNDLE, "changed twice");
  TinyAdapter none;
  none.edit = [](std::vector<TinyChange>* changes) { changes->clear(); };
  ExpectRefused(MakeTinyAdapter(base_, none), ARN_BAD_BUNDLE, "changes 0");
}

TEST_F(AdapterFileTest, Integers_AreForIntegerMatrices) {
  for (const DType base_type : {DType::kF16, DType::kInt8, DType::kInt4}) {
    TinyBundle base;
    base.weights = base_type;
    const BundleBytes bytes = MakeTinyBundle(base);
    const ModelPtr model = OpenBytes(bytes);
    for (const DType type : {DType::kInt8, DType::kInt4}) {
      TinyAdapter options;
      options.dtype = type;
      const AdapterFile file(MakeTinyAdapter(bytes, options));
      arn_status status = ARN_OK;
      std::string error;
      const AdapterPtr adapter = file.Open(model.get(), &status, &error);
      const bool is_refused = base_type == DType::kF16;
      EXPECT_EQ(is_refused ? ARN_BAD_BUNDLE : ARN_OK, status) << error;
      const std::string expected = std::string("in ") + DTypeName(type) + " of a matrix in f16";
      EXPECT_THAT(error, HasSubstr(is_refused ? expected : ""));
    }
  }
}

TEST_F(AdapterFileTest, WrongBlocks_AreNamed) {
  using Block = fbs::LowRankBlock;
  const auto edit = [](const Block& second) {
    return [second](TinyChange* c) { c->blocks[1] = second; };
  };
  // 64 rows, two blocks of 32 with ranks 3 of 6.
  for (const Block& bad : {Block(31, 32, 3, 3), Block(32, 33, 3, 3), Block(32, 0, 3, 3),
                           Block(65, 1, 3, 3), Block(32, 32, 4, 3), Block(32, 32, 0, 0),
                           Block(32, 32, 0, 7), Block(32, UINT32_MAX - 8, 3, 3),
                           Block(UINT32_MAX, 32, 3, 3), Block(32, 32, UINT32_MAX, 3)}) {
    ExpectRefusedEdit(edit(bad), ARN_BAD_BUNDLE, "layers.0.qkv, block 1");
  }
}

TEST_F(AdapterFileTest, WhatIsNoLinearLayer_IsRefused) {
  uint32_t n = 0;
  for (uint32_t tensor = 0; tensor < arn_model_tensor_count(model_.get()); ++tensor) {
    arn_tensor_info info = ARN_TENSOR_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_model_get_tensor(model_.get(), tensor, &info));
    const std::string name = info.name;
    if (name != "embedding" && name != "head" && name != "final_norm") continue;
    ExpectRefusedEdit([tensor](TinyChange* c) { c->tensor = tensor; }, ARN_UNSUPPORTED, name);
    ++n;
  }
  EXPECT_EQ(3u, n);
}

TEST_F(AdapterFileTest, Truncated_IsRefused) {
  for (size_t n = 0; n < good_.size(); n += n < 256 ? 7 : 997) {
    const AdapterFile file({good_.begin(), good_.begin() + static_cast<long>(n)});
    arn_status status = ARN_OK;
    std::string error;
    EXPECT_EQ(nullptr, file.Open(model_.get(), &status, &error)) << n;
    EXPECT_NE(ARN_OK, status);
  }
}

// With repaired hashes, so that damage reaches the checks behind them. What is accepted must run.
TEST_F(AdapterFileTest, DamagedIndex_IsRefusedOrRuns) {
  BundleHeader header;
  std::memcpy(&header, good_.data(), sizeof header);
  const std::vector<int32_t> ids = SomeIds(5, 61);
  uint32_t n_refused = 0, n_ran = 0;
  for (size_t at = header.index_offset; at < good_.size(); ++at) {
    for (const uint8_t flip : {0x01, 0x80, 0xFF}) {
      std::vector<uint8_t> bad = good_;
      bad[at] ^= flip;
      RepairHashes(bad.data(), bad.size());
      const AdapterFile file(bad);
      arn_status status = ARN_OK;
      std::string error;
      const AdapterPtr adapter = file.Open(model_.get(), &status, &error);
      if (adapter == nullptr) {
        EXPECT_NE(ARN_OK, status);
        ++n_refused;
        continue;
      }
      const arn_adapter* handle = adapter.get();
      arn_session_options options = ARN_SESSION_OPTIONS_INIT;
      options.context_tokens = 16;
      options.n_threads = 1;
      options.adapters = &handle;
      options.n_adapters = 1;
      const SessionPtr session = NewSession(model_.get(), options);
      const uint32_t first = 0;
      ASSERT_EQ(ARN_OK, arn_session_set_adapters(session.get(), &first, nullptr, 1));
      EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
      ++n_ran;
    }
  }
  EXPECT_GT(n_refused, 500u);
  EXPECT_GT(n_ran, 0u);  // names, for one
}

TEST_F(AdapterFileTest, DamagedData_IsRefused) {
  BundleHeader header;
  std::memcpy(&header, good_.data(), sizeof header);
  std::vector<uint8_t> bad = good_;
  bad[header.segments_offset + 40] ^= 1;
  ExpectRefused(bad, ARN_HASH_MISMATCH, "adapter: hash");
  bad = good_;
  bad[header.index_offset + 40] ^= 1;
  ExpectRefused(bad, ARN_HASH_MISMATCH, "index is damaged");
}

}  // namespace
}  // namespace arn::test
