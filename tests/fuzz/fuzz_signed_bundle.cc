// libFuzzer: edits of a signed bundle, opened with its public key. The hashes are repaired, so that
// what is refused is refused by the signature. A bundle that opens and runs must give the logits of
// the one that was signed.
//
// Input: edits (byte_edits.h). The empty input is the bundle itself.
#include <cstring>
#include <filesystem>
#include <vector>

#include "converter/convert/convert.h"
#include "converter/write/signing_key.h"
#include "runtime/bundle/bundle.h"
#include "tests/fuzz/byte_edits.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/session_support.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr uint8_t kSeed[convert::SigningKey::kSeedBytes] = {7, 1, 4};

std::vector<uint8_t> SignedBundle(const convert::SigningKey& key) {
  const TempFolder folder;
  TinyCheckpoint checkpoint;
  checkpoint.layers = 1;
  checkpoint.vocab = 24;
  checkpoint.hidden = 16;
  checkpoint.ffn = 16;
  checkpoint.heads = 2;
  checkpoint.kv_heads = 1;
  WriteTinyCheckpoint(folder / "checkpoint", checkpoint);
  convert::ConvertOptions options;
  options.folder = folder / "checkpoint";
  options.output = folder / "signed.arn";
  options.no_tokenizer = true;
  options.n_threads = 1;
  options.formats.target = FindPackTarget("portable");
  options.signing_key = &key;
  convert::Convert(options, {});
  return ReadFile(options.output);
}

class SignedSubject {
 public:
  SignedSubject() : key_(kSeed), file_(SignedBundle(key_)) {
    std::memcpy(&header_, file_.data(), sizeof header_);
    if (!Run(file_, &logits_)) EndFuzzing("the signed bundle does not run");
  }

  void Exercise(const uint8_t* data, size_t size) const {
    // The second beginning is the index.
    std::vector<uint8_t> file =
        EditedBytes(file_, data, size, [&](uint8_t flags, uint64_t offset) -> uint64_t {
          return (flags & kEditAtSecond) != 0 ? header_.index_offset + offset : offset;
        });
    RepairHashes(file.data(), file.size());
    std::vector<float> logits;
    if (!Run(file, &logits)) return;
    if (logits.size() != logits_.size() ||
        std::memcmp(logits.data(), logits_.data(), logits.size() * sizeof(float)) != 0) {
      EndFuzzing("a changed bundle runs, and says something else");
    }
  }

 private:
  // Returns false if the bundle is refused, when it opens or when it runs.
  bool Run(const std::vector<uint8_t>& file, std::vector<float>* logits) const {
    const BundleBytes bytes(file);
    arn_model_options options = ARN_MODEL_OPTIONS_INIT;
    options.public_key = key_.public_key();
    char error[256] = "";
    arn_model* opened = nullptr;
    if (arn_model_open_memory(bytes.data(), bytes.size(), &options, error, sizeof error, &opened) !=
        ARN_OK) {
      if (error[0] == '\0') EndFuzzing("refused without a reason");
      return false;
    }
    const ModelPtr model(opened);
    arn_session_options session_options = ARN_SESSION_OPTIONS_INIT;
    session_options.context_tokens = 16;
    session_options.n_threads = 1;
    arn_session* created = nullptr;
    if (arn_session_create(model.get(), &session_options, nullptr, 0, error, sizeof error,
                           &created) != ARN_OK) {
      return false;
    }
    const SessionPtr session(created);
    const int32_t ids[] = {3, 1, 4, 1, 5};
    const float* row = nullptr;
    if (arn_session_prefill(session.get(), ids, 5) != ARN_OK ||
        arn_session_logits(session.get(), &row) != ARN_OK) {
      return false;
    }
    logits->assign(row, row + 24);
    return true;
  }

  const convert::SigningKey key_;
  const std::vector<uint8_t> file_;
  BundleHeader header_;
  std::vector<float> logits_;
};

std::vector<std::string> SignedSeeds() {
  return {std::string(), std::string("\x00\x90\x00\x01", 4), std::string("\x10\x20\x00\x01", 4),
          std::string("\x01\x00\x48\x01\x02", 5)};
}

}  // namespace
}  // namespace arn::test

ARN_FUZZ_TARGET(signed_bundle, arn::test::SignedSeeds) {
  static const arn::test::SignedSubject* const subject = new arn::test::SignedSubject;
  subject->Exercise(data, size);
}
