// Bundles run matmul by matmul, and matrices quantised along the way.
#include "converter/calibrate/lockstep.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "converter/base/auto_target.h"
#include "converter/base/error.h"
#include "converter/calibrate/calibrate.h"
#include "tests/support/tiny_checkpoint.h"
#include "tests/unit/converter/expect_error.h"

namespace arn::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kExperts = 4;

// Turns the feed-forward parts into experts with top-1 routing.
void MakeExperts(test::TinyCheckpoint* tiny) {
  tiny->architecture = "MixtralForCausalLM";
  tiny->model_type = "mixtral";
  tiny->config = {{"num_local_experts", kExperts}, {"num_experts_per_tok", 1}};
}

void EditExperts(const test::TinyCheckpoint& tiny, test::TinyTensors* tensors) {
  const auto put = [&](const std::string& name, uint64_t rows, uint64_t cols) {
    (*tensors)[name] = {"F32",
                        {rows, cols},
                        test::EncodeFloats(test::TinyValues(name, rows * cols, 1, 0.3f), "F32")};
  };
  for (uint32_t l = 0; l < tiny.layers; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      tensors->erase(layer + "mlp." + name + ".weight");
    }
    put(layer + "block_sparse_moe.gate.weight", kExperts, tiny.hidden);
    for (uint32_t e = 0; e < kExperts; ++e) {
      const std::string expert = layer + "block_sparse_moe.experts." + std::to_string(e) + ".";
      put(expert + "w1.weight", tiny.ffn, tiny.hidden);
      put(expert + "w2.weight", tiny.hidden, tiny.ffn);
      put(expert + "w3.weight", tiny.ffn, tiny.hidden);
    }
  }
}

class LockstepTest : public ::testing::Test {
 protected:
  // Writes the checkpoint and its f32 bundle for this machine.
  void Make(const test::TinyCheckpoint& tiny) {
    const bool has_experts = tiny.model_type == "mixtral";
    test::WriteTinyCheckpoint(folder_ / "model", tiny, [&](test::TinyTensors& tensors) {
      if (has_experts) EditExperts(tiny, &tensors);
    });
    options_.folder = folder_ / "model";
    options_.output = folder_ / "f32.arn";
    options_.formats = {DType::kF32, DType::kF32, DType::kF32, AutoTarget()};
    for (const MatrixInfo& matrix : ListMatrices(options_)) {
      if (matrix.name.find(".experts.") != std::string::npos) experts_.push_back(matrix.name);
    }
    Convert(options_, {});
  }

  CalibrateOptions OptionsAs(DType weights, DType head, bool in_order, uint32_t n_threads) {
    CalibrateOptions calibrate;
    calibrate.convert = options_;
    calibrate.convert.formats.weights = weights;
    calibrate.convert.formats.head = head;
    calibrate.convert.n_threads = n_threads;
    calibrate.reference = options_.output;
    calibrate.temporary = folder_ / "work.arn";
    calibrate.text = text_;
    calibrate.in_order = in_order;
    calibrate.session_bytes = session_bytes_;
    return calibrate;
  }

  CalibratedMatrices CalibrateAs(DType weights, DType head, bool in_order, uint32_t n_threads,
                                 uint64_t* n_done = nullptr) {
    const CalibrateOptions calibrate = OptionsAs(weights, head, in_order, n_threads);
    CalibratedMatrices result = Calibrate(calibrate, [&](uint64_t done, uint64_t total) {
      EXPECT_LE(done, total);
      if (n_done != nullptr) *n_done = done;
    });
    EXPECT_FALSE(std::filesystem::exists(calibrate.temporary));
    return result;
  }

  static std::vector<float> Values(const Weight& weight) {
    std::vector<float> values(size_t{weight.rows} * weight.cols);
    for (uint32_t r = 0; r < weight.rows; ++r) {
      UnpackRowF32(weight, r, values.data() + size_t{r} * weight.cols);
    }
    return values;
  }

  // All input rows of each matmul, window by window.
  using Seen = std::vector<std::pair<std::string, std::vector<float>>>;
  Seen Run(size_t bundle, size_t n_bundles, uint32_t n_threads,
           uint64_t most_bytes = kSessionBytes) {
    const Runner runner(options_.output, "test");
    Seen seen;
    RunInLockstep(std::vector<const Runner*>(n_bundles, &runner), text_, experts_,
                  {folder_ / "sessions", most_bytes}, n_threads, [&](const Matmul& matmul) {
                    ASSERT_EQ(matmul.rows.size(), n_bundles);
                    seen.emplace_back(matmul.tensor, std::vector<float>());
                    for (const MatmulRows& part : matmul.rows[bundle]) {
                      seen.back().second.insert(seen.back().second.end(), part.rows,
                                                part.rows + part.n_rows * matmul.width);
                    }
                  });
    return seen;
  }

  test::TempFolder folder_;
  ConvertOptions options_;
  std::vector<std::string> experts_;
  uint64_t session_bytes_ = kSessionBytes;
  // Three windows, the last with one token.
  const CalibrationText text_ = {{3, 10, 17, 5, 6, 7, 8, 20, 41, 2, 2, 9, 33}, 6};
};

std::vector<std::string> Names(
    const std::vector<std::pair<std::string, std::vector<float>>>& seen) {
  std::vector<std::string> names;
  for (const auto& [name, rows] : seen) names.push_back(name);
  return names;
}

TEST_F(LockstepTest, EachMatmulOnce_WithTheRowsOfAllWindows) {
  const test::TinyCheckpoint tiny;
  Make(tiny);
  const Seen seen = Run(0, 1, 1);
  EXPECT_THAT(Names(seen), ElementsAre("layers.0.qkv", "layers.0.attention_out", "layers.0.gate_up",
                                       "layers.0.down", "layers.1.qkv", "layers.1.attention_out",
                                       "layers.1.gate_up", "layers.1.down", "head"));
  for (size_t i = 0; i + 1 < seen.size(); ++i) {
    EXPECT_EQ(seen[i].second.size(), text_.ids.size() * (i % 4 == 3 ? tiny.ffn : tiny.hidden));
  }
  EXPECT_EQ(seen.back().second.size(), 3 * tiny.hidden);  // last tokens of the windows

  // The inputs of the first layer depend only on the token.
  const auto values = [&](const char* name, uint64_t n) {
    return test::TinyValues(name, n, tiny.base_seed, tiny.amplitude);
  };
  const size_t hidden = tiny.hidden;
  const std::vector<float> embedding = values("model.embed_tokens.weight", tiny.vocab * hidden);
  const std::vector<float> weight = values("model.layers.0.input_layernorm.weight", hidden);
  for (size_t t = 0; t < text_.ids.size(); ++t) {
    const float* x = embedding.data() + static_cast<size_t>(text_.ids[t]) * hidden;
    double square = 0;
    for (size_t i = 0; i < hidden; ++i) {
      square += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    const double factor = 1 / std::sqrt(square / static_cast<double>(hidden) + tiny.rms_norm_eps);
    for (size_t i = 0; i < hidden; ++i) {
      ASSERT_NEAR(seen[0].second[t * hidden + i],
                  static_cast<double>(x[i]) * factor * static_cast<double>(weight[i]), 1e-5)
          << t << ", " << i;
    }
  }
}

TEST_F(LockstepTest, AnyThreads_AnyBundle_SameRows) {
  Make({});
  const Seen one = Run(0, 1, 1);
  EXPECT_EQ(Run(0, 2, 3), one);
  EXPECT_EQ(Run(1, 2, 64), one);
}

// In a file: no window, and all but one.
TEST_F(LockstepTest, SessionsInAFile_SameRows_NoFileIsLeft) {
  Make({});
  const Seen in_memory = Run(1, 2, 2);
  const uint64_t bytes = Runner(options_.output, "test").Plan(LockstepSession(text_)).total_bytes;
  EXPECT_EQ(Run(1, 2, 2, 0), in_memory);
  EXPECT_EQ(Run(1, 2, 2, 2 * (bytes + (64 << 10))), in_memory);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "sessions"));
}

TEST_F(LockstepTest, Experts_InTheirOrder_WithTheTokensRoutedToThem) {
  test::TinyCheckpoint tiny;
  MakeExperts(&tiny);
  Make(tiny);
  const Seen seen = Run(0, 1, 2);
  std::vector<std::string> order;
  std::set<std::string> names;
  size_t tokens = 0;
  for (const auto& [name, rows] : seen) {
    EXPECT_TRUE(names.insert(name).second) << name << " came twice";
    if (name.rfind("layers.0.experts.", 0) != 0) continue;
    order.push_back(name);
    if (name.find("gate_up") != std::string::npos) tokens += rows.size() / tiny.hidden;
  }
  EXPECT_EQ(tokens, text_.ids.size());
  std::vector<std::string> expected;
  for (const std::string& name : experts_) {
    if (names.count(name) != 0 && name.rfind("layers.0.", 0) == 0) expected.push_back(name);
  }
  EXPECT_EQ(order, expected);
  EXPECT_GE(order.size(), 4u) << "a text that needs but one expert shows nothing";
}

TEST_F(LockstepTest, WhoIsToldThrows_AllEnds) {
  Make({});
  int calls = 0;
  const Runner runner(options_.output, "test");
  EXPECT_THROW(RunInLockstep({&runner, &runner}, text_, {}, {folder_ / "sessions", 0}, 2,
                             [&](const Matmul&) {
                               if (++calls == 3) throw std::runtime_error("enough");
                             }),
               std::runtime_error);
  EXPECT_EQ(calls, 3);
}

TEST_F(LockstepTest, ARunFails_TheReasonIsTold) {
  Make({});
  const Runner runner(options_.output, "test");
  CalibrationText text = text_;
  text.ids[8] = 64;  // the vocabulary is 64
  EXPECT_THAT(
      test::ErrorOf([&] {
        RunInLockstep({&runner}, text, {}, {folder_ / "sessions", 0}, 2, [](const Matmul&) {});
      }),
      HasSubstr("f32.arn: cannot test"));
}

TEST_F(LockstepTest, Calibrate_AllMatricesOfLayersAndHead) {
  test::TinyCheckpoint tiny;
  tiny.tied = false;
  Make(tiny);
  uint64_t done = 0;
  const CalibratedMatrices calibrated = CalibrateAs(DType::kInt4, DType::kInt8, true, 2, &done);
  EXPECT_EQ(done, 9u);
  ASSERT_EQ(calibrated.matrices().size(), 9u);
  for (const auto& [name, weight] : calibrated.matrices()) {
    EXPECT_EQ(weight.dtype, name == "head" ? DType::kInt8 : DType::kInt4) << name;
  }
  EXPECT_EQ(calibrated.matrices().at("head").rows, tiny.vocab);
}

// Tied, but with two types: one bundle has a separate head matrix, the other has none.
TEST_F(LockstepTest, Calibrate_HeadOfAnotherTypeThanTheEmbedding) {
  Make({});
  const CalibratedMatrices calibrated = CalibrateAs(DType::kF32, DType::kInt4, true, 2);
  ASSERT_EQ(calibrated.matrices().size(), 1u);
  EXPECT_EQ(calibrated.matrices().begin()->first, "head");
}

TEST_F(LockstepTest, Calibrate_FormatsWithoutIntegers_Nothing) {
  Make({});
  EXPECT_THAT(CalibrateAs(DType::kF32, DType::kF32, true, 1).matrices(), IsEmpty());
}

// With a float embedding only the inputs of the first matmul are the same in both models.
TEST_F(LockstepTest, Calibrate_InOrder_SeesWhatIsQuantisedAlready) {
  Make({});
  const CalibratedMatrices in_order = CalibrateAs(DType::kInt4, DType::kF32, true, 1);
  const CalibratedMatrices alone = CalibrateAs(DType::kInt4, DType::kF32, false, 1);
  for (const auto& [name, weight] : in_order.matrices()) {
    const std::vector<float> other = Values(alone.matrices().at(name));
    if (name == "layers.0.qkv") {
      EXPECT_EQ(Values(weight), other);
    } else if (AutoTarget() != FindPackTarget("portable")) {
      EXPECT_NE(Values(weight), other) << name;
    }
  }
}

TEST_F(LockstepTest, Calibrate_SessionsInAFile_SameMatrices) {
  test::TinyCheckpoint tiny;
  tiny.tied = false;
  MakeExperts(&tiny);
  Make(tiny);
  const CalibratedMatrices in_memory = CalibrateAs(DType::kInt4, DType::kInt4, true, 2);
  session_bytes_ = 0;
  const CalibratedMatrices in_file = CalibrateAs(DType::kInt4, DType::kInt4, true, 2);
  ASSERT_EQ(in_memory.matrices().size(), in_file.matrices().size());
  for (const auto& [name, weight] : in_memory.matrices()) {
    EXPECT_EQ(Values(weight), Values(in_file.matrices().at(name))) << name;
  }
}

// Ends after any number of matrices, and once each time it goes on.
TEST_F(LockstepTest, Calibrate_GoesOnWhereItWasInterrupted_SameMatrices) {
  test::TinyCheckpoint tiny;
  tiny.tied = false;
  MakeExperts(&tiny);
  Make(tiny);
  const CalibratedMatrices expected = CalibrateAs(DType::kInt4, DType::kInt4, true, 2);
  const std::filesystem::path output = folder_ / "out.arn";
  const auto options_with = [&](CalibrationNotes* notes) {
    CalibrateOptions calibrate = OptionsAs(DType::kInt4, DType::kInt4, true, 2);
    calibrate.temporary = notes->copy();
    calibrate.notes = notes;
    calibrate.stage = "all";
    calibrate.frame = notes->measured();
    return calibrate;
  };
  const auto count_noted = [&](const CalibrationNotes& notes) {
    uint64_t n = 0;
    for (const auto& [name, weight] : expected.matrices()) n += notes.HashOf(name) ? 1 : 0;
    return n;
  };
  uint64_t most = 0;  // quantised by one run
  for (bool is_done = false; !is_done;) {
    CalibrationNotes notes(output, "key");
    const CalibrateOptions calibrate = options_with(&notes);
    const uint64_t before = count_noted(notes);
    try {
      const CalibratedMatrices found = Calibrate(calibrate, [&](uint64_t done, uint64_t) {
        if (done > before + 1) throw std::runtime_error("interrupted");
      });
      is_done = true;
      EXPECT_TRUE(notes.is_stage_done());
      EXPECT_EQ(found.matrices().size(), expected.matrices().size());
      for (const auto& [name, weight] : found.matrices()) {
        EXPECT_EQ(Values(weight), Values(expected.matrices().at(name))) << name;
      }
    } catch (const std::runtime_error&) {
      const uint64_t after = count_noted(notes);
      ASSERT_GT(after, before);
      most = std::max(most, after - before);
    }
  }
  EXPECT_LE(most, 2u);
  // All is noted: nothing runs, and damaged bytes are made again.
  for (const bool is_damaged : {false, true}) {
    CalibrationNotes notes(output, "key");
    const CalibrateOptions calibrate = options_with(&notes);
    uint64_t done = 0;
    if (is_damaged) {
      const CalibratedMatrices whole = Calibrate(calibrate, [](uint64_t, uint64_t) {});
      const Weight& weight = whole.matrices().begin()->second;
      const std::vector<uint8_t> file = test::ReadFile(notes.copy());
      const auto* bytes = reinterpret_cast<const uint8_t*>(weight.data);
      const auto at = std::search(file.begin(), file.end(), bytes, bytes + weight.bytes);
      std::fstream copy(notes.copy(), std::ios::in | std::ios::out | std::ios::binary);
      copy.seekp(at - file.begin());
      copy.put(static_cast<char>(~*at));
    }
    const CalibratedMatrices found =
        Calibrate(calibrate, [&](uint64_t n_done, uint64_t) { done = n_done; });
    EXPECT_EQ(done != 0, is_damaged);
    for (const auto& [name, weight] : expected.matrices()) {
      EXPECT_EQ(Values(weight), Values(found.matrices().at(name))) << name;
    }
  }
  { CalibrationNotes other(output, "another key"); }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.arn.quantised.tmp"));
  CalibrationNotes::Remove(output);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.arn.calibrate.resume"));
}

TEST_F(LockstepTest, Calibrate_AnyThreads_SameMatrices) {
  test::TinyCheckpoint tiny;
  tiny.tied = false;
  MakeExperts(&tiny);
  Make(tiny);
  const CalibratedMatrices one = CalibrateAs(DType::kInt4, DType::kInt4, true, 1);
  const CalibratedMatrices many = CalibrateAs(DType::kInt4, DType::kInt4, true, 5);
  ASSERT_EQ(one.matrices().size(), many.matrices().size());
  EXPECT_GT(one.matrices().size(), 5u);
  for (const auto& [name, weight] : one.matrices()) {
    EXPECT_EQ(Values(weight), Values(many.matrices().at(name))) << name;
  }
}

// The bundle stores the calibrated matrices, in every layout.
TEST_F(LockstepTest, Convert_TakesTheCalibratedMatrices) {
  Make({});
  for (const DType dtype : {DType::kInt4, DType::kInt8}) {
    const CalibratedMatrices calibrated = CalibrateAs(dtype, DType::kInt8, true, 2);
    for (const char* target : {"portable", "arm64-i8mm", "x86-avx512vnni"}) {
      ConvertOptions options = options_;
      options.output = folder_ / "out.arn";
      options.formats.weights = dtype;
      options.formats.head = DType::kInt8;
      options.formats.target = FindPackTarget(target);
      options.quantized = &calibrated.matrices();
      const ConvertResult result = Convert(options, {});
      const std::vector<uint8_t> file = test::ReadFile(options.output);
      size_t found = 0;
      for (const StoredMatrix& stored : result.matrices) {
        const auto wanted = calibrated.matrices().find(stored.name);
        if (wanted == calibrated.matrices().end()) continue;
        Weight weight = stored.weight;
        weight.data = reinterpret_cast<const std::byte*>(file.data()) + stored.file_offset;
        EXPECT_EQ(Values(weight), Values(wanted->second)) << target << " " << stored.name;
        ++found;
      }
      EXPECT_EQ(found, calibrated.matrices().size());
    }
  }
}

}  // namespace
}  // namespace arn::convert
