// Values share bytes by their lifetimes: in every program of the golden models, a step finds in the
// values it reads what was last written to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "platform/base/arith.h"
#include "runtime/memory/activation_plan.h"
#include "runtime/model/model.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/pooled_case.h"

namespace arn::test {
namespace {

// Values as memory holds them: each piece of kSliceAlign bytes belongs to the value that was
// written there last. A view belongs to what it views.
class Owners {
 public:
  Owners(const Program& program, uint64_t bytes)
      : program_(program),
        pieces_(bytes / kSliceAlign, kNoValue),
        written_(program.values.size()) {}

  void Write(ValueId id) {
    for (ValueId& piece : PiecesOf(id)) piece = Whole(id);
    written_[Whole(id)] = true;
  }
  // True if nothing was written over it, or it was never written.
  bool IsKept(ValueId id) {
    if (!written_[Whole(id)]) return true;
    const Span<ValueId> pieces = PiecesOf(id);
    return std::all_of(pieces.begin(), pieces.end(), [&](ValueId at) { return at == Whole(id); });
  }

 private:
  ValueId Whole(ValueId id) const {
    const ValueId whole = program_.values[id].view_of;
    return whole == kNoValue ? id : whole;
  }
  Span<ValueId> PiecesOf(ValueId id) {
    const Slice& slice = program_.values[id].slice;
    const uint64_t begin = slice.offset / kSliceAlign;
    return Span<ValueId>(pieces_.data() + begin,
                         CeilDiv(slice.offset + slice.bytes, kSliceAlign) - begin);
  }

  const Program& program_;
  std::vector<ValueId> pieces_;
  std::vector<bool> written_;
};

// Plans `of_model` for some rows and runs its steps over the owners of bytes.
void ExpectValuesAreKept(const Program& of_model) {
  std::vector<Value> values(of_model.values.begin(), of_model.values.end());
  Program program = of_model;
  program.values = Span<Value>(values.data(), values.size());
  program.max_rows = 16;
  program.max_logit_rows = 3;
  program.max_encoder_rows = program.n_encoder_steps == 0 ? 0 : 24;
  program.max_pooled_rows = program.n_encoder_steps == 0 ? 0 : 5;
  Layout layout;
  ASSERT_EQ(Status::kOk, PlanActivations(program, &layout));
  Owners owners(program, layout.RegionBytes(Region::kActivations));
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const StepOperands operands = OperandsOf(step);
    std::vector<ValueId> named(operands.values, operands.values + operands.n_values);
    std::vector<ValueId> reads;
    // Those of these two are scratch.
    if (step.op() != Op::kExperts && step.op() != Op::kHeadLinear) reads = named;
    if (step.in != kNoValue) reads.push_back(step.in);
    if (operands.accumulates && step.out != kNoValue) reads.push_back(step.out);
    for (const ValueId id : reads) {
      ASSERT_TRUE(owners.IsKept(id)) << "step " << i << " (" << OpName(step.op()) << ", layer "
                                     << step.layer << ") reads " << values[id].name;
    }
    if (step.out != kNoValue) named.push_back(step.out);
    if (step.in != kNoValue) named.push_back(step.in);
    for (const ValueId id : named) owners.Write(id);
  }
  // Results are read behind the last step.
  for (ValueId id = 0; id < values.size(); ++id) {
    if (values[id].last_step + 1 < program.steps.size()) continue;
    EXPECT_TRUE(owners.IsKept(id)) << values[id].name << ", at the end";
  }
}

void ExpectValuesOfModelAreKept(const std::filesystem::path& bundle) {
  const ModelPtr opened = OpenModel(bundle);
  ASSERT_NE(nullptr, opened);
  const auto& model = *reinterpret_cast<const Model*>(opened.get());
  for (const Program* program : {&model.program, &model.pooled, &model.vision}) {
    ExpectValuesAreKept(*program);
  }
}

class ActivationsTest : public testing::TestWithParam<std::string> {};

TEST_P(ActivationsTest, Values_AreKeptUntilTheyAreRead) {
  ARN_NEEDS_CONVERTER();
  const TempFolder folder;
  const std::filesystem::path checkpoint = folder / "checkpoint", bundle = folder / "model.arn";
  if (GetParam().starts_with("pooled/")) {
    ASSERT_TRUE(ConvertPooled(LoadPooled(GetParam()), checkpoint, bundle, {"--weights", "f32"}));
    return ExpectValuesOfModelAreKept(bundle);
  }
  const nlohmann::json json =
      nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/" + GetParam() + ".json")));
  std::filesystem::create_directories(checkpoint);
  if (json.contains("preprocessor")) {
    WriteFile(checkpoint / "preprocessor_config.json", json.at("preprocessor").dump());
  }
  ASSERT_TRUE(ConvertGolden(LoadGolden(GetParam()), ConfigStyle::kTransformers5, checkpoint, bundle,
                            {"--weights", "f32"}));
  ExpectValuesOfModelAreKept(bundle);
}

// Returns the names of all models: decoders, with encoders, poolings and vision towers.
std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const char* folder : {"", "encoder/", "pooled/", "vision/"}) {
    for (std::string& name : GoldenNames(folder)) names.push_back(std::move(name));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, ActivationsTest, testing::ValuesIn(Names()),
                         [](const testing::TestParamInfo<std::string>& p) {
                           std::string name = p.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace arn::test
