// Bundles with one changed byte or a missing end: an error or a correct run, never a crash. The
// changes are the same in every run.
#include <cstring>

#include "kernels/contract/code_type.h"
#include "runtime/bundle/bundle.h"
#include "tests/fuzz/exercise.h"
#include "tests/harness/bundles.h"
#include "tests/support/self_test_support.h"
#include "tests/support/tiny_bundle.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr uint32_t kFlips = 2000;
constexpr uint32_t kTruncations = 500;

// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t n) {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % n;
  }

 private:
  uint64_t state_;
};

BundleHeader HeaderOf(const std::vector<uint8_t>& file) {
  BundleHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

// Returns a small bundle with a decoder and a tokenizer, made by the converter.
std::vector<uint8_t> MakeTextBundle() {
  const TempFolder folder;
  TinyCheckpoint checkpoint;
  checkpoint.vocab = 1024;
  WriteTinyCheckpoint(folder / "checkpoint", checkpoint);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy_file(SourcePath("models/fable/fable-2m") / name,
                               folder / "checkpoint" / name);
  }
  if (!Convert(folder / "checkpoint", folder / "text.arn", {"--weights", "int8"})) return {};
  return ReadFile(folder / "text.arn");
}

std::vector<uint8_t> MakePlainBundle(DType weights) {
  TinyBundle options;
  options.weights = weights;
  options.qk_norm = true;
  const BundleBytes bytes = MakeTinyBundle(options);
  return std::vector<uint8_t>(bytes.data(), bytes.data() + bytes.size());
}

std::vector<uint8_t> MakePrefixBundle() {
  TinyBundle bundle;
  bundle.layer_kinds = {{}, {4}, {0, 8}};
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 1;
  const BundleBytes bytes = MakeTinyBundle(WithPrefix(bundle, options, SomeIds(11, bundle.vocab)));
  return std::vector<uint8_t>(bytes.data(), bytes.data() + bytes.size());
}

std::vector<uint8_t> MakeSelfTestBundle() {
  const BundleBytes bytes = MakeTinyBundle(WithSelfTest(TinyBundle()));
  return std::vector<uint8_t>(bytes.data(), bytes.data() + bytes.size());
}

// Scan layers next to attention.
std::vector<uint8_t> MakeStateBundle() {
  TinyBundle bundle;
  const TinyLayer scan = {0, 0, -1, TinyMixer::kScan};
  bundle.layer_kinds = {scan, {4}, scan};
  const BundleBytes bytes = MakeTinyBundle(bundle);
  return std::vector<uint8_t>(bytes.data(), bytes.data() + bytes.size());
}

struct Counts {
  uint32_t outcomes[3] = {0, 0, 0};
  uint32_t& operator[](Outcome outcome) { return outcomes[static_cast<size_t>(outcome)]; }
};

void ExpectRuns(const std::vector<uint8_t>& file) {
  const BundleBytes aligned(file);
  std::string problem;
  EXPECT_EQ(Outcome::kRan, ExerciseBundle(aligned.data(), aligned.size(), &problem));
  EXPECT_EQ("", problem);
}

// Flips bits of one byte: a quarter of the runs in the header and index, half there with repaired
// hashes so that the validators are reached, and a quarter in the segments.
void ExpectFlipsAreSurvived(const std::vector<uint8_t>& file) {
  ExpectRuns(file);
  Counts counts;
  const BundleHeader header = HeaderOf(file);
  for (uint32_t i = 0; i < kFlips; ++i) {
    Random random(i * 1000003u + 17);
    std::vector<uint8_t> damaged = file;
    const bool in_segments = i % 4 == 3;
    const bool is_repaired = i % 4 == 1 || i % 4 == 2;
    uint64_t at = 0;
    if (in_segments) {
      at = header.segments_offset + random.Below(header.segments_bytes);
    } else {
      const uint64_t k = random.Below(offsetof(BundleHeader, header_hash) / 4 + header.index_bytes);
      at = k < header.index_bytes ? header.index_offset + k : (k - header.index_bytes) * 4;
    }
    damaged[at] ^= static_cast<uint8_t>(1 + random.Below(255));
    if (is_repaired) RepairHashes(damaged.data(), damaged.size());
    const BundleBytes aligned(damaged);
    SCOPED_TRACE(testing::Message() << "flip " << i << " at byte " << at);
    std::string problem;
    const Outcome outcome = ExerciseBundle(aligned.data(), aligned.size(), &problem);
    EXPECT_EQ("", problem);
    if (!in_segments && !is_repaired) {
      EXPECT_EQ(Outcome::kNotOpened, outcome) << "a hash that does not match";
    }
    ++counts[outcome];
  }
  // Changed weights run and changed sizes do not, so both outcomes must occur.
  EXPECT_GT(counts[Outcome::kNotOpened], 0u);
  EXPECT_GT(counts[Outcome::kRan], 0u);
}

void Truncate(const std::vector<uint8_t>& file) {
  for (uint32_t i = 0; i < kTruncations; ++i) {
    Random random(i + 99);
    // Half of them near the start or the end, in or around the header and the index.
    uint64_t bytes = random.Below(file.size());
    if (i % 4 == 0) bytes = random.Below(256);
    if (i % 4 == 1) bytes = file.size() - 1 - random.Below(256);
    const BundleBytes aligned(
        std::vector<uint8_t>(file.begin(), file.begin() + static_cast<ptrdiff_t>(bytes)));
    std::string problem;
    EXPECT_EQ(Outcome::kNotOpened, ExerciseBundle(aligned.data(), aligned.size(), &problem))
        << bytes << " of " << file.size() << " bytes";
    EXPECT_EQ("", problem);
  }
}

TEST(FuzzFlips, F32Bundle_NeverCrashes) { ExpectFlipsAreSurvived(MakePlainBundle(DType::kF32)); }

TEST(FuzzFlips, Int4Bundle_NeverCrashes) { ExpectFlipsAreSurvived(MakePlainBundle(DType::kInt4)); }

TEST(FuzzFlips, Int3Bundle_NeverCrashes) {
  if (!kHasLowBits) GTEST_SKIP() << "built without ARENITE_LOW_BITS";
  ExpectFlipsAreSurvived(MakePlainBundle(DType::kInt3));
}

TEST(FuzzFlips, Int4KBundle_NeverCrashes) {
  if (!kHasLowBits) GTEST_SKIP() << "built without ARENITE_LOW_BITS";
  ExpectFlipsAreSurvived(MakePlainBundle(DType::kInt4K));
}

TEST(FuzzFlips, Int6KBundle_NeverCrashes) {
  if (!kHasLowBits) GTEST_SKIP() << "built without ARENITE_LOW_BITS";
  ExpectFlipsAreSurvived(MakePlainBundle(DType::kInt6K));
}

TEST(FuzzFlips, BundleWithStates_NeverCrashes) { ExpectFlipsAreSurvived(MakeStateBundle()); }

TEST(FuzzFlips, BundleWithPrefix_NeverCrashes) {
  const std::vector<uint8_t> file = MakePrefixBundle();
  // The intact prefix must be usable in the session the damaged ones get.
  const BundleBytes whole(file);
  const ModelPtr model = OpenBytes(whole);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 16;
  EXPECT_EQ(ARN_OK, arn_session_use_prefix(NewSession(model.get(), options).get()));
  ExpectFlipsAreSurvived(file);
}

TEST(FuzzFlips, BundleWithSelfTest_NeverCrashes) { ExpectFlipsAreSurvived(MakeSelfTestBundle()); }

TEST(FuzzFlips, BundleWithTokenizer_NeverCrashes) {
  ARN_NEEDS_CONVERTER();
  const std::vector<uint8_t> file = MakeTextBundle();
  ASSERT_FALSE(file.empty());
  ExpectFlipsAreSurvived(file);
}

TEST(FuzzTruncation, PlainBundle_IsRefused) { Truncate(MakePlainBundle(DType::kInt8)); }

TEST(FuzzTruncation, BundleWithPrefix_IsRefused) { Truncate(MakePrefixBundle()); }

TEST(FuzzTruncation, BundleWithTokenizer_IsRefused) {
  ARN_NEEDS_CONVERTER();
  const std::vector<uint8_t> file = MakeTextBundle();
  ASSERT_FALSE(file.empty());
  Truncate(file);
}

}  // namespace
}  // namespace arn::test
