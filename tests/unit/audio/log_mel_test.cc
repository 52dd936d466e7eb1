// Features against transformers' WhisperFeatureExtractor (data/log_mel.json).
#include "runtime/audio/log_mel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/unit/audio/signal.h"

namespace arn::test {
namespace {

constexpr float kTolerance = 1e-4f;

nlohmann::json Cases() { return nlohmann::json::parse(std::ifstream(ARN_LOG_MEL_CASES)); }

std::vector<float> FeaturesOf(LogMel* mel, const PaddedAudio& audio) {
  std::vector<float> out(audio.n_frames() * mel->n_mels());
  const float largest = mel->Energies(audio, 0, audio.n_frames(), out.data());
  LogMel::ToFeatures(largest, {out.data(), out.size()});
  return out;
}

TEST(LogMelTest, GoldenSignals_GiveTransformersFeatures) {
  const nlohmann::json cases = Cases();
  for (const auto& [name, c] : cases.items()) {
    SCOPED_TRACE(name);
    const std::vector<float> pcm = MakeSignal(c.at("samples"));
    const PaddedAudio audio = {{pcm.data(), pcm.size()},
                               std::max<uint64_t>(pcm.size(), c.at("padded").get<uint64_t>())};
    ASSERT_EQ(c.at("n_frames").get<uint64_t>(), audio.n_frames());
    const uint32_t n_mels = c.at("mels");
    const auto mel = std::make_unique<LogMel>(n_mels);
    const std::vector<float> found = FeaturesOf(mel.get(), audio);
    float worst = 0;
    for (size_t f = 0; f < c.at("frames").size(); ++f) {
      for (size_t b = 0; b < c.at("bands").size(); ++b) {
        const size_t frame = c.at("frames")[f], band = c.at("bands")[b];
        const float expected = c.at("values")[f][b];
        const float error = std::abs(expected - found[frame * n_mels + band]);
        if (error > worst) worst = error;
        EXPECT_LE(error, kTolerance) << "frame " << frame << ", band " << band;
      }
    }
    RecordProperty(name + "_worst", std::to_string(worst));
  }
}

// Windows of long audio are computed apart.
TEST(LogMelTest, PartsOfAnAudio_EqualTheWhole) {
  const std::vector<float> pcm = MakeSignal(30000);
  for (const uint64_t padded : {uint64_t{30000}, uint64_t{30100}, uint64_t{48000}}) {
    const PaddedAudio audio = {{pcm.data(), pcm.size()}, padded};
    const auto mel = std::make_unique<LogMel>(80);
    std::vector<float> whole(audio.n_frames() * 80);
    const float largest = mel->Energies(audio, 0, audio.n_frames(), whole.data());
    EXPECT_EQ(*std::max_element(whole.begin(), whole.end()), largest);
    for (const uint64_t first : {0u, 1u, 7u, 150u, 187u}) {
      const uint64_t n = std::min<uint64_t>(37, audio.n_frames() - first);
      std::vector<float> part(n * 80, 5.0f);
      mel->Energies(audio, first, n, part.data());
      EXPECT_TRUE(
          std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(first * 80)))
          << "padded to " << padded << ", from " << first;
    }
  }
}

TEST(LogMelTest, Silence_IsTheLeastFeature) {
  const std::vector<float> pcm(1000);
  const auto mel = std::make_unique<LogMel>(80);
  for (const float x : FeaturesOf(mel.get(), {{pcm.data(), pcm.size()}, 3200})) {
    EXPECT_EQ(-1.5f, x);  // (log10(1e-10) + 4) / 4
  }
}

TEST(LogMelTest, SamplesThatAreNotFinite_AreFound) {
  std::vector<float> pcm(100);
  EXPECT_EQ(100u, FindBadSample({pcm.data(), pcm.size()}));
  pcm[40] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(40u, FindBadSample({pcm.data(), pcm.size()}));
  pcm[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(3u, FindBadSample({pcm.data(), pcm.size()}));
}

}  // namespace
}  // namespace arn::test
