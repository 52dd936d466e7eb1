// libFuzzer: a regular expression and, after a NUL byte, a text.
#include <string>
#include <vector>

#include "tests/fuzz/exercise_constraint.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

std::vector<std::string> RegexSeeds() {
  const auto seed = [](const std::string& pattern, const std::string& text) {
    return pattern + '\0' + text;
  };
  return {seed("a{2,3}(b|cd?)*[^a-c]\\d+", "aabcd9"), seed("^(?:\\w+\\s){0,20}\\.$", "w w."),
          seed("((a*)*b{0,65536}){1,9}|x", "aaabbb"),
          seed("[\\u00e9-\\u{1F600}]*\\p{L}", "\xC3\xA9x")};
}

}  // namespace

ARN_FUZZ_TARGET(regex, RegexSeeds) {
  std::string problem;
  arn::test::ExerciseConstraint(arn::ConstraintKind::kRegex, data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
