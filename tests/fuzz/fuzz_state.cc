// libFuzzer: edits of a valid saved session. Repairs the hashes, since otherwise the checks after
// them are never reached.
//
// Input: one byte that selects the state and whether it is restored from memory or from a file,
// whose pages are mapped; then edits (byte_edits.h).
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/byte_edits.h"
#include "tests/fuzz/exercise_state.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/state_bytes.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

// The second beginning is the first page; offsets from it count 8 bytes.
std::vector<uint8_t> Edited(const std::vector<uint8_t>& good, const uint8_t* data, size_t size) {
  const StateHeader header = StateHeaderOf(good);
  const uint64_t pages = header.logits.offset + header.logits.bytes;
  std::vector<uint8_t> state =
      EditedBytes(good, data, size, [&](uint8_t flags, uint64_t offset) -> uint64_t {
        return (flags & kEditAtSecond) != 0 ? pages + 8 * offset : offset;
      });
  RepairState(&state);
  return state;
}

void Exercise(const StateSubject& subject, const std::vector<uint8_t>& state, bool is_mapped) {
  std::vector<int32_t> tokens;
  std::string problem;
  if (is_mapped) {
    // A new file each time: what is mapped must not be written in place.
    static const TempFolder folder;
    const std::filesystem::path path = folder / "state";
    WriteFile(path, state.data(), state.size());
    subject.ExerciseFile(path.string(), ARN_VERIFY_TABLES, &tokens, &problem);
    std::filesystem::remove(path);
  } else {
    subject.Exercise(state.data(), state.size(), ARN_VERIFY_TABLES, &tokens, &problem);
  }
  ExpectNoProblem(problem);
}

std::vector<std::string> StateSeeds() {
  std::vector<std::string> seeds;
  for (char i = 0; i < 6; ++i) seeds.emplace_back(1, i);
  return seeds;
}

}  // namespace
}  // namespace arn::test

ARN_FUZZ_TARGET(state, arn::test::StateSeeds) {
  using arn::test::StateSubject;
  static const StateSubject subjects[3] = {StateSubject(StateSubject::Kind::kActive),
                                           StateSubject(StateSubject::Kind::kQuantised),
                                           StateSubject(StateSubject::Kind::kStates)};
  if (size == 0) return;
  const StateSubject& subject = subjects[data[0] % 3];
  const bool is_mapped = data[0] / 3 % 2 == 1;
  arn::test::Exercise(subject, arn::test::Edited(subject.state(), data + 1, size - 1), is_mapped);
}
