// libFuzzer: edits of a valid adapter, which is then opened beside its base and used. Repairs the
// hashes, since otherwise the checks after them are never reached. Needs no corpus: the empty input
// is a valid adapter.
//
// Input: edits until the end: a byte of flags, a u16 offset, and the bytes to write there.
#include <cstdlib>
#include <vector>

#include "tests/support/tiny_adapter.h"

namespace arn::test {
namespace {

constexpr uint8_t kBytesMask = 7;  // number of bytes to write, minus one
constexpr uint8_t kCut = 8;        // truncates the file at the offset and writes nothing
constexpr uint8_t kInIndex = 16;   // the offset counts from the end, where the index is

std::vector<uint8_t> Edited(const std::vector<uint8_t>& good, const uint8_t* data, size_t size) {
  std::vector<uint8_t> file = good;
  while (size >= 4 && !file.empty()) {
    const uint8_t flags = data[0];
    const uint64_t place = (data[1] + (uint64_t{data[2]} << 8)) % file.size();
    const uint64_t at = (flags & kInIndex) != 0 ? file.size() - 1 - place : place;
    data += 3;
    size -= 3;
    if ((flags & kCut) != 0) {
      file.resize(at);
      continue;
    }
    for (uint64_t i = 0; i <= (flags & kBytesMask) && size > 0 && at + i < file.size(); ++i) {
      file[at + i] = *data++;
      --size;
    }
  }
  RepairHashes(file.data(), file.size());
  return file;
}

struct Subject {
  BundleBytes base = MakeTinyBundle(TinyBundle());
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
  if (arn_adapter_get_info(adapter.get(), &info) != ARN_OK) std::abort();
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
  if (arn_session_set_adapters(session.get(), &first, nullptr, 1) != ARN_OK) std::abort();
  const int32_t ids[] = {1, 2, 3};
  int32_t next = 0;
  if (arn_session_prefill(session.get(), ids, 3) != ARN_OK) std::abort();
  arn_session_decode(session.get(), &next);  // refused for logits that are not finite
}

}  // namespace
}  // namespace arn::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const arn::test::Subject subject;
  arn::test::Use(subject, arn::test::Edited(subject.adapter, data, size));
  return 0;
}
