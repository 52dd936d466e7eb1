// Driver of the C API test: makes the bundles, runs the C cases and reports failures.
#include <arenite/arenite.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "platform/base/status.h"
#include "tests/capi/capi_case.h"
#include "tests/harness/bundles.h"
#include "tests/support/tiny_adapter.h"
#include "tests/support/tiny_bundle.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

// The status values of the header must match the library's.
#define ARN_SAME(c_name, cpp_name) \
  static_assert(static_cast<uint32_t>(c_name) == static_cast<uint32_t>(Status::cpp_name))
ARN_SAME(ARN_OK, kOk);
ARN_SAME(ARN_INTERNAL, kInternal);
ARN_SAME(ARN_BAD_STATE, kBadState);
ARN_SAME(ARN_CANCELLED, kCancelled);
ARN_SAME(ARN_BAD_ARGUMENT, kBadArgument);
ARN_SAME(ARN_UNSUPPORTED, kUnsupported);
ARN_SAME(ARN_BAD_TOKEN, kBadToken);
ARN_SAME(ARN_BUFFER_TOO_SMALL, kBufferTooSmall);
ARN_SAME(ARN_TEMPLATE_ERROR, kTemplateError);
ARN_SAME(ARN_CONTEXT_FULL, kContextFull);
ARN_SAME(ARN_OUT_OF_MEMORY, kOutOfMemory);
ARN_SAME(ARN_NOT_FOUND, kNotFound);
ARN_SAME(ARN_IO, kIo);
ARN_SAME(ARN_DISK_FULL, kDiskFull);
ARN_SAME(ARN_BAD_BUNDLE, kBadBundle);
ARN_SAME(ARN_BUNDLE_VERSION, kBundleVersion);
ARN_SAME(ARN_BUNDLE_TRUNCATED, kBundleTruncated);
ARN_SAME(ARN_HASH_MISMATCH, kHashMismatch);
ARN_SAME(ARN_BAD_SAVE, kBadSave);
ARN_SAME(ARN_SAVE_MISMATCH, kSaveMismatch);
ARN_SAME(ARN_BAD_SIGNATURE, kBadSignature);
ARN_SAME(ARN_DEVICE, kDevice);
ARN_SAME(ARN_DEVICE_LOST, kDeviceLost);
#undef ARN_SAME

constexpr size_t kEmbeddedOffset = 16384;

struct NamedCase {
  const char* name;
  capi_case run;
};
void PrintTo(const NamedCase& named, std::ostream* out) { *out << named.name; }

class Capi : public testing::TestWithParam<NamedCase> {
 protected:
  Capi() : bytes_(MakeTinyBundle(TinyBundle())), adapter_(MakeTinyAdapter(bytes_)) {
    path_ = (folder_ / "tiny.arn").string();
    WriteFile(path_, bytes_.data(), bytes_.size());
    std::vector<uint8_t> embedded(bytes_.size() + 2 * kEmbeddedOffset, 0x55);
    std::copy(bytes_.data(), bytes_.data() + bytes_.size(), embedded.data() + kEmbeddedOffset);
    embedded_path_ = (folder_ / "embedded").string();
    WriteFile(embedded_path_, embedded.data(), embedded.size());
    env_.path = path_.c_str();
    env_.data = bytes_.data();
    env_.bytes = bytes_.size();
    env_.embedded_path = embedded_path_.c_str();
    env_.adapter_path = adapter_.path();
  }

  TempFolder folder_;
  BundleBytes bytes_;
  AdapterFile adapter_;
  std::string path_, embedded_path_;
  capi_env env_ = {};
};

TEST_P(Capi, Case_Holds) { EXPECT_EQ(0, GetParam().run(&env_)) << env_.failure; }

// The cases that use the bundle with a tokenizer.
class CapiText : public Capi {};

TEST_P(CapiText, Case_Holds) {
  ARN_NEEDS_CONVERTER();
  const std::string bundle = (folder_ / "text.arn").string();
  ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", "int8"}));
  env_.text_path = bundle.c_str();
  EXPECT_EQ(0, GetParam().run(&env_)) << env_.failure;
}

std::string Name(const testing::TestParamInfo<NamedCase>& param) { return param.param.name; }

#define ARN_CASE(name) \
  NamedCase { #name, capi_##name }

INSTANTIATE_TEST_SUITE_P(Model, Capi,
                         testing::Values(ARN_CASE(status_names), ARN_CASE(version),
                                         ARN_CASE(open_path), ARN_CASE(open_fd),
                                         ARN_CASE(open_memory), ARN_CASE(open_errors),
                                         ARN_CASE(info), ARN_CASE(tensors), ARN_CASE(program),
                                         ARN_CASE(without_tokenizer)),
                         Name);
INSTANTIATE_TEST_SUITE_P(Plan, Capi,
                         testing::Values(ARN_CASE(plan), ARN_CASE(plan_errors),
                                         ARN_CASE(options_size), ARN_CASE(create_errors),
                                         ARN_CASE(caller_memory)),
                         Name);
INSTANTIATE_TEST_SUITE_P(Session, Capi,
                         testing::Values(ARN_CASE(prefill_decode), ARN_CASE(prefill_progress),
                                         ARN_CASE(logits), ARN_CASE(all_logits), ARN_CASE(read_kv),
                                         ARN_CASE(bad_tokens), ARN_CASE(context_full),
                                         ARN_CASE(sampling), ARN_CASE(reset), ARN_CASE(stats),
                                         ARN_CASE(two_sessions), ARN_CASE(null_session)),
                         Name);
INSTANTIATE_TEST_SUITE_P(Device, Capi, testing::Values(ARN_CASE(device), ARN_CASE(device_structs)),
                         Name);
INSTANTIATE_TEST_SUITE_P(Profile, Capi,
                         testing::Values(ARN_CASE(profile), ARN_CASE(profile_errors),
                                         ARN_CASE(count)),
                         Name);
INSTANTIATE_TEST_SUITE_P(Adapter, Capi, testing::Values(ARN_CASE(adapter)), Name);
#ifndef ARENITE_NO_SCHEDULER
INSTANTIATE_TEST_SUITE_P(Scheduler, Capi,
                         testing::Values(ARN_CASE(scheduler), ARN_CASE(scheduler_errors)), Name);
#endif
INSTANTIATE_TEST_SUITE_P(Transcribe, Capi, testing::Values(ARN_CASE(transcribe)), Name);
INSTANTIATE_TEST_SUITE_P(Generate, Capi,
                         testing::Values(ARN_CASE(generate), ARN_CASE(generate_errors),
                                         ARN_CASE(generate_ends), ARN_CASE(generate_logprobs),
                                         ARN_CASE(cancel_from_callback),
                                         ARN_CASE(cancel_from_thread),
                                         ARN_CASE(cancel_is_remembered),
                                         ARN_CASE(calls_from_callback)),
                         Name);
INSTANTIATE_TEST_SUITE_P(Text, CapiText,
                         testing::Values(ARN_CASE(tokenize), ARN_CASE(tokenize_errors),
                                         ARN_CASE(tokenize_plain), ARN_CASE(tokenize_options),
                                         ARN_CASE(detokenize), ARN_CASE(detokenizer),
                                         ARN_CASE(detokenizer_errors), ARN_CASE(token_text),
                                         ARN_CASE(stop_strings), ARN_CASE(chat),
                                         ARN_CASE(chat_errors), ARN_CASE(chat_plain_spans),
                                         ARN_CASE(reply), ARN_CASE(reply_errors)),
                         Name);
INSTANTIATE_TEST_SUITE_P(Conversation, CapiText,
                         testing::Values(ARN_CASE(conversation), ARN_CASE(conversation_memory),
                                         ARN_CASE(conversation_wrong_order),
                                         ARN_CASE(conversation_errors)),
                         Name);

}  // namespace
}  // namespace arn::test
