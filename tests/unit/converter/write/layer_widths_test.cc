// Specs whose layers differ in head counts and feed-forward width. A narrow layer computes what a
// wide one does whose other heads and channels have no effect: the oracle is the wide model.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "converter/family/families.h"
#include "converter/tensors/tensor_plan.h"
#include "converter/write/bundle_writer.h"
#include "converter/write/index.h"
#include "converter/write/tensor_writer.h"
#include "tests/support/logits_support.h"
#include "tests/support/session_support.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::convert {
namespace {

constexpr uint32_t kVocab = 64, kHidden = 32, kHeadDim = 8, kFfn = 48, kNarrowFfn = 20;
constexpr const char* kLayer = "model.layers.1.";  // the narrow one

test::TinyTensor& Named(test::TinyTensors& tensors, const std::string& name) {
  return tensors.at(kLayer + name + ".weight");
}

// Keeps the first `rows` rows.
void CutRows(test::TinyTensor* tensor, uint64_t rows) {
  tensor->bytes.resize(rows * tensor->shape[1] * sizeof(float));
  tensor->shape[0] = rows;
}

// Keeps the first `cols` columns.
void CutCols(test::TinyTensor* tensor, uint64_t cols) {
  std::vector<uint8_t> bytes;
  const size_t row_bytes = tensor->shape[1] * sizeof(float);
  for (uint64_t r = 0; r < tensor->shape[0]; ++r) {
    const auto row = tensor->bytes.begin() + static_cast<std::ptrdiff_t>(r * row_bytes);
    bytes.insert(bytes.end(), row, row + static_cast<std::ptrdiff_t>(cols * sizeof(float)));
  }
  tensor->bytes = bytes;
  tensor->shape[1] = cols;
}

// Sets the columns from `cols` on to zero.
void ZeroCols(test::TinyTensor* tensor, uint64_t cols) {
  const size_t row_bytes = tensor->shape[1] * sizeof(float);
  for (uint64_t r = 0; r < tensor->shape[0]; ++r) {
    std::memset(tensor->bytes.data() + r * row_bytes + cols * sizeof(float), 0,
                row_bytes - cols * sizeof(float));
  }
}

test::TinyCheckpoint Checkpoint4Heads() {
  test::TinyCheckpoint checkpoint;
  checkpoint.vocab = kVocab;
  checkpoint.hidden = kHidden;
  checkpoint.ffn = kFfn;
  checkpoint.heads = 4;
  checkpoint.kv_heads = 2;
  checkpoint.head_dim = kHeadDim;
  return checkpoint;
}

// Writes the bundle of a spec, without a tokenizer, and returns its bytes.
test::BundleBytes Write(const DecoderSpec& spec, const std::filesystem::path& folder,
                        DType weights) {
  Formats formats;
  formats.weights = formats.embedding = formats.head = weights;
  formats.target = FindPackTarget("portable");
  std::vector<std::string> warnings;
  const Checkpoint checkpoint(folder);
  const TensorPlan plan = MakeTensorPlan(spec, checkpoint, formats, &warnings);
  BundleWriter writer(folder / "model.arn");
  std::vector<fbs::Segment> segments;
  for (const PlannedTensor& tensor : plan.tensors) {
    segments.push_back(WriteTensor(
        tensor, nullptr, 1, [](const PlannedTensor&, uint64_t) {}, &writer));
  }
  flatbuffers::FlatBufferBuilder builder;
  const auto model = BuildModel({&spec, &plan, &segments, "tiny"}, &builder);
  const auto generation = BuildGeneration({}, &builder);
  const auto target = builder.CreateString(formats.target->name);
  fbs::FinishBundleBuffer(
      builder, fbs::CreateBundle(builder, 0, kPackVersion, target, model, 0, generation));
  writer.Close(builder);
  writer.Commit();
  return test::BundleBytes(test::ReadFile(folder / "model.arn"));
}

class LayerWidthsTest : public testing::TestWithParam<uint32_t> {};

TEST_P(LayerWidthsTest, NarrowLayer_ComputesWhatAWideOneWithoutEffectDoes) {
  const test::TinyCheckpoint checkpoint = Checkpoint4Heads();
  const test::TempFolder wide_folder, narrow_folder;
  test::WriteTinyCheckpoint(wide_folder.path(), checkpoint, [](test::TinyTensors& tensors) {
    ZeroCols(&Named(tensors, "self_attn.o_proj"), 2 * kHeadDim);
    ZeroCols(&Named(tensors, "mlp.down_proj"), kNarrowFfn);
  });
  test::WriteTinyCheckpoint(narrow_folder.path(), checkpoint, [](test::TinyTensors& tensors) {
    CutRows(&Named(tensors, "self_attn.q_proj"), 2 * kHeadDim);
    CutRows(&Named(tensors, "self_attn.k_proj"), kHeadDim);
    CutRows(&Named(tensors, "self_attn.v_proj"), kHeadDim);
    CutCols(&Named(tensors, "self_attn.o_proj"), 2 * kHeadDim);
    CutRows(&Named(tensors, "mlp.gate_proj"), kNarrowFfn);
    CutRows(&Named(tensors, "mlp.up_proj"), kNarrowFfn);
    CutCols(&Named(tensors, "mlp.down_proj"), kNarrowFfn);
  });
  std::vector<std::string> warnings;
  const DecoderSpec wide = ReadDecoderSpec(TinyConfig(checkpoint), "config.json", &warnings);
  DecoderSpec narrow = wide;
  narrow.kinds.push_back(wide.kinds[0]);
  narrow.kinds[1].n_heads = 2;
  narrow.kinds[1].n_kv_heads = 1;
  narrow.kinds[1].ffn_dim = kNarrowFfn;
  narrow.layer_kinds = {0, 1};

  const test::BundleBytes wide_bytes = Write(wide, wide_folder.path(), DType::kF32);
  const test::BundleBytes narrow_bytes = Write(narrow, narrow_folder.path(), DType::kF32);
  EXPECT_LT(narrow_bytes.size(), wide_bytes.size());
  const test::ModelPtr wide_model = test::OpenBytes(wide_bytes);
  const test::ModelPtr narrow_model = test::OpenBytes(narrow_bytes);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = GetParam();
  options.kv_type = ARN_KV_F32;
  options.context_tokens = 64;
  options.prefill_chunk = 9;
  const test::SessionPtr expected = test::NewSession(wide_model.get(), options);
  const test::SessionPtr found = test::NewSession(narrow_model.get(), options);
  const std::vector<int32_t> ids = test::SomeIds(30, kVocab);
  for (arn_session* session : {expected.get(), found.get()}) {
    ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()));
  }
  EXPECT_LT(test::LogitDifference(expected.get(), found.get(), kVocab), 1e-6);
  for (int i = 0; i < 20; ++i) {
    int32_t a = -1, b = -2;
    ASSERT_EQ(ARN_OK, arn_session_decode(expected.get(), &a));
    ASSERT_EQ(ARN_OK, arn_session_decode(found.get(), &b));
    EXPECT_EQ(a, b) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LayerWidthsTest,
                         testing::Values(uint32_t{ARN_BACKEND_REFERENCE},
                                         uint32_t{ARN_BACKEND_CPU}),
                         [](const testing::TestParamInfo<uint32_t>& p) {
                           return p.param == ARN_BACKEND_CPU ? "cpu" : "reference";
                         });

}  // namespace
}  // namespace arn::convert
