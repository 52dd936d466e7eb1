#include "runtime/text/unicode.h"
#include "runtime/text/unicode_data.h"
#include "runtime/text/utf8.h"
#include "utf8proc.h"

namespace arn {

static_assert(static_cast<int>(Category::kLu) == UTF8PROC_CATEGORY_LU &&
              static_cast<int>(Category::kPo) == UTF8PROC_CATEGORY_PO &&
              static_cast<int>(Category::kCo) == UTF8PROC_CATEGORY_CO);

Category CategoryOf(uint32_t c) {
  return static_cast<Category>(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
}

uint32_t LowercaseOf(uint32_t c) {
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

size_t GraphemeBytes(StringView text) {
  const char* const end = text.data + text.size;
  Utf8Char c = ReadValidUtf8(text.data);
  const char* p = text.data + c.bytes;
  utf8proc_int32_t state = 0;
  while (p != end) {
    const Utf8Char next = ReadValidUtf8(p);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state)) {
      break;
    }
    c = next;
    p += c.bytes;
  }
  return static_cast<size_t>(p - text.data);
}

}  // namespace arn
