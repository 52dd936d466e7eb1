// Replaces normal_form.cc in libraries without normal forms (ARENITE_NORMAL_FORMS): refuses texts
// that may need one.
#include "runtime/text/normal_form.h"
#include "runtime/text/utf8.h"

namespace arn {

uint64_t NormalFormScratchBytes(size_t) { return 0; }

Status ToNormalForm(NormalForm form, StringView text, Span<char>, Arena*, StringView* out) {
  // Below it no character changes or is affected by the previous one.
  const uint32_t first_unstable = form == NormalForm::kNfc ? 0x300 : 0xA0;
  const char* const end = text.data + text.size;
  for (const char* p = text.data; p != end;) {
    const Utf8Char c = ReadValidUtf8(p);
    if (c.code_point >= first_unstable) return Status::kUnsupported;
    p += c.bytes;
  }
  *out = text;
  return Status::kOk;
}

}  // namespace arn
