// libFuzzer: any bytes as a saved session. The hashes are made to match, or nothing behind them
// would be reached. A corpus is not needed: inputs are put over the front of a good state.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/fuzz/exercise_state.h"
#include "tests/support/state_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const arn::test::StateSubject subject;
  // The input overwrites the front of a whole state: what is behind it stays in its place.
  std::vector<uint8_t> state = subject.state();
  std::memcpy(state.data(), data, size < state.size() ? size : state.size());
  arn::test::RepairState(&state);
  std::vector<int32_t> tokens;
  std::string problem;
  subject.Exercise(state.data(), state.size(), ARN_VERIFY_TABLES, &tokens, &problem);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
