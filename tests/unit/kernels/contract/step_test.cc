#include "kernels/contract/step.h"

#include <gtest/gtest.h>

#include <string>

namespace arn {
namespace {

TEST(StepTest, Constructed_FromParameters_IsOfTheirOp) {
  const Step step(LinearParams{.weight = 7, .accumulate = true}, 1, 2, 3);
  EXPECT_EQ(Op::kLinear, step.op());
  EXPECT_EQ(1, step.in);
  EXPECT_EQ(2, step.out);
  EXPECT_EQ(3, step.layer);
  EXPECT_EQ(7u, step.Get<LinearParams>().weight);
  EXPECT_TRUE(step.Get<LinearParams>().accumulate);
}

TEST(StepTest, If_AnotherOp_IsNull) {
  Step step{ActParams()};
  EXPECT_EQ(nullptr, step.If<GatedActParams>());
  ASSERT_NE(nullptr, step.If<ActParams>());
  step.If<ActParams>()->activation = Activation::kMish;
  EXPECT_EQ(Activation::kMish, step.Get<ActParams>().activation);
}

TEST(StepTest, Assigned_FromAnotherOp_HasItsParameters) {
  Step step(ScanParams{.rates = 4, .skip = 5}, 0, 1);
  step = Step(ConvParams{.weight = 6}, 1, 0);
  EXPECT_EQ(nullptr, step.If<ScanParams>());
  EXPECT_EQ(6u, step.Get<ConvParams>().weight);
}

TEST(StepOperandsTest, Experts_NameTheirFiveValuesAndAllMatrices) {
  ExpertsParams params;
  params.weight = 10;
  params.n_experts = 3;
  params.topk = 2;
  params.gathered = 3;
  params.gate_up = 4;
  params.activated = 5;
  params.expert_out = 6;
  const StepOperands operands = OperandsOf(Step(params, 0, 1));
  ASSERT_EQ(5u, operands.n_values);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(2 + i, operands.values[i]);
  EXPECT_TRUE(operands.accumulates);
  EXPECT_FALSE(operands.Multiplies(9));
  EXPECT_TRUE(operands.Multiplies(10));
  EXPECT_TRUE(operands.Multiplies(15));
  EXPECT_FALSE(operands.Multiplies(16));
}

TEST(StepOperandsTest, AbsentIds_AreLeftOut) {
  const StepOperands operands = OperandsOf(Step(QkvRopeParams{.k_norm = 8}, 0));
  EXPECT_EQ(0u, operands.n_values);
  ASSERT_EQ(1u, operands.n_weights);
  EXPECT_EQ(8u, operands.weights[0]);
  EXPECT_FALSE(operands.Multiplies(kNoWeight));
}

TEST(ActivationTest, Names_OfAll_AreDifferent) {
  std::string seen = " ";
  for (uint32_t i = 0; i < kActivationCount; ++i) {
    const std::string name = std::string(ActivationName(static_cast<Activation>(i))) + " ";
    EXPECT_EQ(std::string::npos, seen.find(" " + name)) << name;
    EXPECT_NE("unknown activation ", name) << i;
    seen += name;
  }
}

}  // namespace
}  // namespace arn
