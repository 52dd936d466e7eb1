// libFuzzer: edits of a valid adapter, which is then opened beside its base and used. Repairs the
// hashes, since otherwise the checks after them are never reached. Needs no corpus: the empty input
// is a valid adapter.
//
// Input: edits (byte_edits.h).
#include <string>
#include <vector>

#include "tests/fuzz/byte_edits.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tiny_adapter.h"

namespace arn::test {
namespace {

std::vector<uint8_t> Edited(const std::vector<uint8_t>& good, const uint8_t* data, size_t size) {
  // The index is at the end.
  std::vector<uint8_t> file =
      EditedBytes(good, data, size, [&](uint8_t flags, uint64_t offset) -> uint64_t {
        return (flags & kEditAtSecond) != 0 ? good.size() - 1 - offset % good.size() : offset;
      });
  RepairHashes(file.data(), file.size());
  return file;
}

TinyBundle Base() {
  TinyBundle bundle;
  bundle.layers = 1;
  bundle.hidden = 16;
  bundle.heads = 2;
  bundle.kv_heads = 1;
  bundle.ffn = 16;
  bundle.vocab = 17;
  return bundle;
}

struct Subject {
  BundleBytes base = MakeTinyBundle(Base());
  ModelPtr model = OpenBytes(base);
  std::vector<uint8_t> adapter = MakeTinyAdapter(base);
};

// Runs a prompt and a token with the adapter, if it opens.
void Use(const Subject& subject, const std::vector<uint8_t>& bytes) {
  const AdapterFile file(bytes);
  arn_status status = ARN_OK;
  std::string error;
  const AdapterPtr adapter = file.Open(subject.model.get(), &status, &error);
  if (adapter == nullptr) return;
  arn_adapter_info info = ARN_ADAPTER_INFO_INIT;
  if (arn_adapter_get_info(adapter.get(), &info) != ARN_OK) EndFuzzing("no information");
  const arn_adapter* handle = adapter.get();
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 1;
  options.context_tokens = 16;
  options.adapters = &handle;
  options.n_adapters = 1;
  arn_session* made = nullptr;
  if (arn_session_create(subject.model.get(), &options, nullptr, 0, nullptr, 0, &made) != ARN_OK) {
    return;
  }
  const SessionPtr session(made);
  const uint32_t first = 0;
  if (arn_session_set_adapters(session.get(), &first, nullptr, 1) != ARN_OK) {
    EndFuzzing("an open adapter cannot be used");
  }
  const int32_t ids[] = {1, 2, 3};
  int32_t next = 0;
  if (arn_session_prefill(session.get(), ids, 3) != ARN_OK) EndFuzzing("no prefill");
  arn_session_decode(session.get(), &next);  // refused for logits that are not finite
}

std::vector<std::string> AdapterSeeds() {
  // The adapter itself, and one of whose index a byte is changed.
  return {std::string(), std::string("\x10\x20\x00\x01", 4)};
}

}  // namespace
}  // namespace arn::test

ARN_FUZZ_TARGET(adapter, arn::test::AdapterSeeds) {
  static const arn::test::Subject subject;
  arn::test::Use(subject, arn::test::Edited(subject.adapter, data, size));
}
