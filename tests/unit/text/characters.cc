#include "characters.h"

#include <vector>

#include "runtime/text/normal_form.h"
#include "runtime/text/unicode.h"
#include "runtime/text/unicode_data.h"

namespace {

using namespace arn;  // NOLINT(google-build-using-namespace): arn or arn_minimal

uint32_t Normalize(bool is_compatible, std::string_view text, bool* is_same) {
  const NormalForm form = is_compatible ? NormalForm::kNfkc : NormalForm::kNfc;
  std::vector<char> buffer(NormalFormGrowth(form) * text.size());
  std::vector<std::byte> scratch(NormalFormScratchBytes(text.size()) + 64);
  Arena arena({scratch.data(), scratch.size()});
  StringView out = {};
  const Status status =
      ToNormalForm(form, {text.data(), text.size()}, {buffer.data(), buffer.size()}, &arena, &out);
  *is_same = std::string_view(out.data, out.size) == text;
  return static_cast<uint32_t>(status);
}

}  // namespace

const Characters& ARN_CHARACTERS() {
  static const Characters characters = {IsWordCharacter,
                                        IsNumeric,
                                        IsPunctuation,
                                        IsMark,
                                        IsNonspacingMark,
                                        IsControl,
                                        [](uint32_t c) { return CategoryOf(c) != Category::kCn; },
                                        ToLowercase,
                                        [](std::string_view s) {
                                          return GraphemeBytes({s.data(), s.size()});
                                        },
                                        Normalize};
  return characters;
}
