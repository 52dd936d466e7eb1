// libFuzzer: edits of a valid saved session. Repairs the hashes, since otherwise the checks after
// them are never reached. Needs no corpus: the empty input is a valid state.
//
// Input: one byte that selects the state, then edits until the end: a byte of flags, a u16 offset,
// and the bytes to write there.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/fuzz/exercise_state.h"
#include "tests/support/state_bytes.h"

namespace arn::test {
namespace {

constexpr uint8_t kBytesMask = 7;  // number of bytes to write, minus one
constexpr uint8_t kCut = 8;        // truncates the state at the offset and writes nothing
constexpr uint8_t kInPages = 16;   // the offset counts 8 bytes from the first page on

std::vector<uint8_t> Edited(const std::vector<uint8_t>& good, const uint8_t* data, size_t size) {
  std::vector<uint8_t> state = good;
  const StateHeader header = StateHeaderOf(good);
  const uint64_t pages = header.logits.offset + header.logits.bytes;
  while (size >= 4 && !state.empty()) {
    const uint8_t flags = data[0];
    const uint64_t place = data[1] + (uint64_t{data[2]} << 8);
    const uint64_t at = ((flags & kInPages) != 0 ? pages + 8 * place : place) % state.size();
    data += 3;
    size -= 3;
    if ((flags & kCut) != 0) {
      state.resize(at);
      continue;
    }
    for (uint64_t i = 0; i <= (flags & kBytesMask) && size > 0 && at + i < state.size(); ++i) {
      state[at + i] = *data++;
      --size;
    }
  }
  RepairState(&state);
  return state;
}

}  // namespace
}  // namespace arn::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using arn::test::StateSubject;
  static const StateSubject subjects[3] = {StateSubject(StateSubject::Kind::kActive),
                                           StateSubject(StateSubject::Kind::kQuantised),
                                           StateSubject(StateSubject::Kind::kStates)};
  const StateSubject& subject = subjects[size == 0 ? 0 : data[0] % 3];
  const std::vector<uint8_t> state =
      arn::test::Edited(subject.state(), data + (size > 0 ? 1 : 0), size > 0 ? size - 1 : 0);
  std::vector<int32_t> tokens;
  std::string problem;
  subject.Exercise(state.data(), state.size(), ARN_VERIFY_TABLES, &tokens, &problem);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}
