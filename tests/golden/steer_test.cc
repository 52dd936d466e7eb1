// Control vectors against transformers with hooks that add them to the output of layers.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"
#include "tests/harness/process.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr double kSteerTolerance = 3e-4;

struct CloseSteerHandle {
  void operator()(arn_adapter* adapter) const { arn_adapter_close(adapter); }
};
using SteerPtr = std::unique_ptr<arn_adapter, CloseSteerHandle>;

class SteerGoldenTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    const std::string name = std::string("steer/") + GetParam();
    golden_ = LoadGolden(name);
    json_ = nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/" + name + ".json")));
    const nlohmann::json& config = golden_.config;
    hidden_ = config.at(config.contains("hidden_size") ? "hidden_size" : "n_embd");
  }

  // Writes the directions, times `factor`; of one layer alone unless it is 0.
  fs::path WriteVector(const std::string& name, float factor, uint32_t only = 0) const {
    TinyTensors tensors;
    for (const auto& [layer, scale] : json_.at("direction_scales").items()) {
      if (only != 0 && layer != std::to_string(only)) continue;
      std::vector<float> values =
          TinyValues("direction." + layer, hidden_, golden_.checkpoint.base_seed,
                     json_.at("direction_amplitude"));
      for (float& value : values) value *= factor * scale.get<float>();
      tensors["direction." + layer] = {"F32", {hidden_}, EncodeFloats(values, "F32")};
    }
    const std::vector<uint8_t> bytes = EncodeSafetensors(tensors);
    WriteFile(folder_ / name, bytes.data(), bytes.size());
    return folder_ / name;
  }
  bool MakeBase(const std::string& weights = "f32") {
    return ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "checkpoint", base_,
                         {"--weights", weights});
  }
  SteerPtr MakeAdapter(const arn_model* model, const std::string& name, float factor,
                       uint32_t only = 0) const {
    const fs::path vector = WriteVector(name + ".safetensors", factor, only);
    const fs::path out = folder_ / (name + ".arn");
    EXPECT_TRUE(Convert(vector, out, {"--control-vector", "--base", base_.string()}));
    arn_adapter* adapter = nullptr;
    char error[512] = "";
    EXPECT_EQ(ARN_OK, arn_adapter_open(model, out.c_str(), nullptr, error, sizeof error, &adapter))
        << error;
    return SteerPtr(adapter);
  }
  static SessionPtr NewSteered(const arn_model* model, uint32_t backend,
                               const std::vector<const arn_adapter*>& adapters,
                               uint32_t max_sequences = 1) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.kv_type = ARN_KV_F32;
    options.all_logits = 1;
    options.n_threads = 2;
    options.max_sequences = max_sequences;
    options.adapters = adapters.data();
    options.n_adapters = static_cast<uint32_t>(adapters.size());
    return NewSession(model, options);
  }
  std::vector<float> LogitsWith(arn_session* session, const std::vector<uint32_t>& adapters,
                                const std::vector<float>& scales, uint32_t chunk = 64) const {
    EXPECT_EQ(ARN_OK, arn_session_reset(session));
    EXPECT_EQ(ARN_OK,
              arn_session_set_adapters(session, adapters.data(), scales.data(), adapters.size()))
        << arn_session_last_error(session);
    return AllLogits(session, golden_.vocab(), chunk, golden_.all_ids());
  }
  void ExpectGolden(const std::vector<float>& logits) const {
    const std::vector<int32_t> ids = golden_.all_ids();
    ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kSteerTolerance);
    }
  }

  TempFolder folder_;
  const fs::path base_ = folder_ / "base.arn";
  GoldenCase golden_;
  nlohmann::json json_;
  uint32_t hidden_ = 0;
};

TEST_P(SteerGoldenTest, Logits_AreThoseOfTheReference) {
  ASSERT_TRUE(MakeBase());
  const ModelPtr model = OpenModel(base_);
  const SteerPtr whole = MakeAdapter(model.get(), "whole", 1.0f);
  const SteerPtr part = MakeAdapter(model.get(), "part", 4.0f);
  arn_adapter_info info = ARN_ADAPTER_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_adapter_get_info(whole.get(), &info));
  EXPECT_EQ(json_.at("direction_scales").size(), info.n_directions);
  EXPECT_EQ(0u, info.n_changes);
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    const SessionPtr session = NewSteered(model.get(), backend, {whole.get(), part.get()});
    ExpectGolden(LogitsWith(session.get(), {0}, {1.0f}));
    ExpectGolden(LogitsWith(session.get(), {0}, {1.0f}, 1));
    // Several add up.
    ExpectGolden(LogitsWith(session.get(), {1, 0}, {0.125f, 0.5f}));
  }
}

TEST_P(SteerGoldenTest, NoneSet_GivesTheBitsOfTheBase) {
  ASSERT_TRUE(MakeBase("f16"));
  const ModelPtr model = OpenModel(base_);
  const std::vector<float> expected =
      LogitsWith(NewSteered(model.get(), ARN_BACKEND_CPU, {}).get(), {}, {});
  const SteerPtr adapter = MakeAdapter(model.get(), "a", 1.0f);
  const SessionPtr session = NewSteered(model.get(), ARN_BACKEND_CPU, {adapter.get()}, 2);
  EXPECT_EQ(expected, LogitsWith(session.get(), {}, {}));
  EXPECT_NE(expected, LogitsWith(session.get(), {0}, {1.0f}));
}

TEST_P(SteerGoldenTest, Layers_AreThoseOfTheRange) {
  ASSERT_TRUE(MakeBase());
  const ModelPtr model = OpenModel(base_);
  const SteerPtr first = MakeAdapter(model.get(), "first", 1.0f, 1);
  const fs::path all = WriteVector("all.safetensors", 1.0f), out = folder_ / "range.arn";
  ASSERT_TRUE(
      Convert(all, out, {"--control-vector", "--base", base_.string(), "--vector-layers", "0-1"}));
  arn_adapter* opened = nullptr;
  ASSERT_EQ(ARN_OK, arn_adapter_open(model.get(), out.c_str(), nullptr, nullptr, 0, &opened));
  const SteerPtr range(opened);
  const SessionPtr session = NewSteered(model.get(), ARN_BACKEND_CPU, {first.get(), range.get()});
  EXPECT_EQ(LogitsWith(session.get(), {0}, {1.0f}), LogitsWith(session.get(), {1}, {1.0f}));
}

TEST_P(SteerGoldenTest, Converter_NamesWhatItRefuses) {
  ASSERT_TRUE(MakeBase());
  const auto refused = [&](const TinyTensors& tensors, const std::vector<std::string>& more,
                           const std::string& part) {
    const std::vector<uint8_t> bytes = EncodeSafetensors(tensors);
    WriteFile(folder_ / "bad.safetensors", bytes.data(), bytes.size());
    std::vector<std::string> all = {ConverterPath(),
                                    (folder_ / "bad.safetensors").string(),
                                    "--control-vector",
                                    "-o",
                                    (folder_ / "bad.arn").string(),
                                    "--base",
                                    base_.string()};
    all.insert(all.end(), more.begin(), more.end());
    const ProcessResult result = RunProcess(all);
    EXPECT_NE(0, result.exit_code);
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_FALSE(fs::exists(folder_ / "bad.arn"));
  };
  const auto row = [](const std::string& name, uint32_t width, float value) {
    return TinyTensors{
        {name, {"F32", {width}, EncodeFloats(std::vector<float>(width, value), "F32")}}};
  };
  refused(row("direction.0", hidden_, 1.0f), {}, "direction.0: the first layer has none");
  refused(row("direction.x", hidden_, 1.0f), {}, "direction.x is not direction.N");
  refused(row("weight", hidden_, 1.0f), {}, "weight is not direction.N");
  refused(row("direction.99", hidden_, 1.0f), {}, "direction.99");
  refused(row("direction.1", hidden_ + 1, 1.0f), {}, "direction.1 has");
  refused(row("direction.1", hidden_, NAN), {}, "not finite");
  refused(row("direction.1", hidden_, 1.0f), {"--vector-layers", "2-3"}, "layers 2 to 3");
  refused(row("direction.1", hidden_, 1.0f), {"--vector-layers", "3-2"}, "3-2 is not FIRST-LAST");
  refused(row("direction.1", hidden_, 1.0f), {"--weights", "f16"}, "--weights");
}

INSTANTIATE_TEST_SUITE_P(Cases, SteerGoldenTest, testing::Values("rotary", "post_norms", "learned"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace arn::test
