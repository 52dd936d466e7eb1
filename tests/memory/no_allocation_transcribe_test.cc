// Checks that a transcriber allocates nothing after its creation.
#include "tests/golden/speech_case.h"
#include "tests/memory/allocation_trap.h"
#include "tests/unit/audio/signal.h"

namespace arn::test {
namespace {

TEST(NoAllocationTranscribeTest, ShortAndLongAudio) {
  ARN_NEEDS_CONVERTER();
  const SpeechCase c = LoadSpeech("multilingual");
  TempFolder folder;
  ASSERT_TRUE(ConvertSpeech(c, "tests/unit/text/data/byte_level_added/tokenizer.json",
                            folder / "checkpoint", folder / "model.arn", {"--weights", "int8"}));
  const ModelPtr model = OpenModel(folder / "model.arn");
  ASSERT_NE(nullptr, model);
  arn_session_options session_options = ARN_SESSION_OPTIONS_INIT;
  session_options.n_threads = 2;
  const SessionPtr session = NewSession(model.get(), session_options);
  ASSERT_NE(nullptr, session);
  const TranscriberPtr transcriber = NewWordTranscriber(session.get());
  ASSERT_NE(nullptr, transcriber);
  const std::vector<int32_t> prompt(300, 7);
  for (size_t i = 0; i < 2 * c.runs.size(); ++i) {
    const SpeechRun& run = c.runs[i / 2];
    const std::vector<float> pcm = MakeSignal(run.n_samples);
    arn_transcribe_options options = OptionsOf(run);
    if (i % 2 == 1) {  // with text before the windows, each written again
      options.prompt_ids = prompt.data();
      options.n_prompt_ids = static_cast<uint32_t>(prompt.size());
      options.condition_on_previous = 1;
      options.temperature_step = 0.5f;
      options.logprob_threshold = -0.1f;
      options.entropy_threshold = 2.4f;
      options.no_speech_threshold = 0.9f;
    }
    options.words = 1;
    size_t n_bytes = 0;
    options.user = &n_bytes;
    options.on_segment = [](void* user, const arn_segment* segment) {
      *static_cast<size_t*>(user) += segment->text_bytes + segment->n_words;
      return 0;
    };
    arn_transcribe_result result = ARN_TRANSCRIBE_RESULT_INIT;
    g_calls = 0;
    g_trap = true;
    const arn_status status =
        arn_transcribe(transcriber.get(), pcm.data(), pcm.size(), &options, &result);
    g_trap = false;
    EXPECT_EQ(ARN_OK, status) << arn_transcriber_last_error(transcriber.get());
    EXPECT_EQ(0u, g_calls.load());
    EXPECT_GT(result.n_tokens, 0u);
    EXPECT_EQ(i % 2 == 1, result.n_retries != 0);
  }
}

}  // namespace
}  // namespace arn::test
