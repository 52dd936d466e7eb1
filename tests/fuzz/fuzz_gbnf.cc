// libFuzzer: a grammar in GBNF and, after a NUL byte, a text.
#include <string>
#include <vector>

#include "tests/fuzz/exercise_constraint.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

std::vector<std::string> GbnfSeeds() {
  const auto seed = [](const std::string& grammar, const std::string& text) {
    return grammar + '\0' + text;
  };
  return {
      seed("root ::= \"a\" x{0,3} | [b-d]+ \"\\u00e9\"\nx ::= \"(\" root? \")\" # c\n", "a((a))"),
      seed("root ::= root \"+\" t | t\nt ::= [0-9]{1,4} | \"(\" root \")\"", "1+(23+4)"),
      seed("root ::= a*\na ::= . | \"x\" a | \"\"", "xx")};
}

}  // namespace

ARN_FUZZ_TARGET(gbnf, GbnfSeeds) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kGrammar, data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
