// Uses PCRE2's own tables instead of utf8proc's 330 kB. They are not part of its API: the version
// is pinned, and a test compares all characters.
#include "runtime/text/unicode.h"
#include "runtime/text/unicode_data.h"

extern "C" {
#include "config.h"
#include "pcre2_internal.h"
}

namespace arn {
namespace {

// In the order of pcre2_ucp.h.
constexpr Category kCategories[] = {
    Category::kCc, Category::kCf, Category::kCn, Category::kCo, Category::kCs, Category::kLl,
    Category::kLm, Category::kLo, Category::kLt, Category::kLu, Category::kMc, Category::kMe,
    Category::kMn, Category::kNd, Category::kNl, Category::kNo, Category::kPc, Category::kPd,
    Category::kPe, Category::kPf, Category::kPi, Category::kPo, Category::kPs, Category::kSc,
    Category::kSk, Category::kSm, Category::kSo, Category::kZl, Category::kZp, Category::kZs,
};
static_assert(sizeof kCategories == ucp_Zs + 1 && kCategories[ucp_Lu] == Category::kLu &&
              kCategories[ucp_Po] == Category::kPo && kCategories[ucp_Zs] == Category::kZs);

}  // namespace

Category CategoryOf(uint32_t c) { return kCategories[UCD_CHARTYPE(c)]; }

uint32_t LowercaseOf(uint32_t c) {
  constexpr uint32_t kKelvinSign = 0x212A, kGreekExtended = 0x1F00;
  if (c == kKelvinSign) return 'k';
  const Category category = CategoryOf(c);
  // A title-case letter such as U+01C5 lies between its upper case, the "other", and its lower
  // case.
  if (category == Category::kLt && c < kGreekExtended) return c + 1;
  const bool is_upper = category == Category::kLu || category == Category::kLt ||
                        (c >= 0x2160 && c <= 0x216F) ||  // Roman numerals
                        (c >= 0x24B6 && c <= 0x24CF);    // circled letters
  return is_upper ? UCD_OTHERCASE(c) : c;
}

size_t GraphemeBytes(StringView text) {
  const auto* const start = reinterpret_cast<PCRE2_SPTR>(text.data);
  PCRE2_SPTR next = start;
  uint32_t c;
  GETCHARINC(c, next);
  return static_cast<size_t>(PRIV(extuni)(c, next, start, start + text.size, TRUE, nullptr) -
                             start);
}

}  // namespace arn
