#include "runtime/text/normal_form.h"

#include <cstring>

#include "platform/base/result.h"
#include "runtime/text/unicode_later.h"
#include "runtime/text/utf8.h"
#include "utf8proc.h"

namespace arn {
namespace {

constexpr utf8proc_option_t kCompose =
    static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
// No single decomposition has more than 18 characters (UAX #15). For characters that cannot begin a
// run, two bytes become at most three characters.
constexpr size_t kMaxDecomposition = 18;
constexpr size_t kCharactersPerTwoBytes = 3;

bool IsCompatible(NormalForm form) {
  return form == NormalForm::kNfkc || form == NormalForm::kNfkd;
}
bool IsComposed(NormalForm form) { return form == NormalForm::kNfc || form == NormalForm::kNfkc; }

utf8proc_option_t DecomposeOptions(NormalForm form) {
  const int compatible = IsCompatible(form) ? UTF8PROC_COMPAT : 0;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | compatible);
}

// A mark added in a later Unicode version is an ordinary character to the reference.
bool IsLateMark(const utf8proc_property_t& property, uint32_t c) {
  return (property.combining_class != 0 || property.comb_issecond) &&
         IsOtherwiseInReference(CharacterTable::kMark, c);
}

uint32_t CombiningClass(int32_t c) {
  const utf8proc_property_t& property = *utf8proc_get_property(c);
  return IsLateMark(property, static_cast<uint32_t>(c)) ? 0u : property.combining_class;
}

// Writes the character's decomposition, at most `capacity` characters; returns the count, or a
// negative number.
utf8proc_ssize_t Decompose(NormalForm form, uint32_t c, utf8proc_int32_t* out, size_t capacity) {
  const CharacterTable table =
      IsCompatible(form) ? CharacterTable::kCompatible : CharacterTable::kCanonical;
  if (IsOtherwiseInReference(table, c)) {
    if (capacity > 0) out[0] = static_cast<utf8proc_int32_t>(c);
    return 1;
  }
  int boundary = 0;
  return utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), out,
                                 static_cast<utf8proc_ssize_t>(capacity), DecomposeOptions(form),
                                 &boundary);
}

bool IsVowelOrTailJamo(uint32_t c) {
  return (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);
}

// True if the character is its own normal form and unaffected by what precedes it.
bool IsStable(NormalForm form, uint32_t c) {
  if (c < 0xA0) return true;
  if (form == NormalForm::kNfc && c < 0x300) return true;
  if (c >= 0xAC00 && c <= 0xD7A3) return IsComposed(form);  // Hangul syllables
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
  const bool decomposes =
      property->decomp_seqindex != UINT16_MAX && (property->decomp_type == 0 || IsCompatible(form));
  if (property->combining_class != 0 || decomposes) return false;
  return !IsComposed(form) || (!IsVowelOrTailJamo(c) && !property->comb_issecond);
}

// True if text from this character on can be normalised independently.
bool BeginsRun(NormalForm form, uint32_t c) {
  if (IsStable(form, c)) return true;
  utf8proc_int32_t parts[kMaxDecomposition];
  const utf8proc_ssize_t n = Decompose(form, c, parts, kMaxDecomposition);
  if (n <= 0 || CombiningClass(parts[0]) != 0) return false;
  return !IsComposed(form) || (!IsVowelOrTailJamo(static_cast<uint32_t>(parts[0])) &&
                               !utf8proc_get_property(parts[0])->comb_issecond);
}

// Returns the end of the longest prefix of stable characters.
const char* SkipStable(NormalForm form, const char* p, const char* end) {
  while (p != end) {
    uint64_t word;
    if (end - p >= 8) {
      std::memcpy(&word, p, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        p += 8;
        continue;
      }
    }
    const Utf8Char c = ReadValidUtf8(p);
    if (!IsStable(form, c.code_point)) return p;
    p += c.bytes;
  }
  return p;
}

// Sorts marks stably by combining class. REQUIRES: all have one; `temporary` holds as many.
void SortMarks(int32_t* marks, size_t count, int32_t* temporary) {
  constexpr size_t kFew = 16;
  if (count <= kFew) {
    for (size_t i = 1; i < count; ++i) {
      const int32_t mark = marks[i];
      const uint32_t own = CombiningClass(mark);
      size_t j = i;
      for (; j > 0 && CombiningClass(marks[j - 1]) > own; --j) marks[j] = marks[j - 1];
      marks[j] = mark;
    }
    return;
  }
  size_t start[256] = {0};
  for (size_t i = 0; i < count; ++i) ++start[CombiningClass(marks[i])];
  size_t sum = 0;
  for (size_t& s : start) {
    const size_t n = s;
    s = sum;
    sum += n;
  }
  for (size_t i = 0; i < count; ++i) temporary[start[CombiningClass(marks[i])]++] = marks[i];
  std::memcpy(marks, temporary, count * sizeof *marks);
}

struct Workspace {
  int32_t* characters;
  int32_t* temporary;
  size_t capacity;
};

// Normalises [p, end) into out.
Status NormalizeRun(NormalForm form, const char* p, const char* end, const Workspace& work,
                    Span<char> out, size_t* written) {
  size_t count = 0;
  while (p != end) {
    const Utf8Char c = ReadValidUtf8(p);
    const utf8proc_ssize_t n =
        Decompose(form, c.code_point, work.characters + count, work.capacity - count);
    if (n < 0 || static_cast<size_t>(n) > work.capacity - count) return Status::kInternal;
    count += static_cast<size_t>(n);
    p += c.bytes;
  }
  for (size_t i = 0; i < count;) {
    size_t last = i;
    while (last < count && CombiningClass(work.characters[last]) != 0) ++last;
    if (last > i + 1) SortMarks(work.characters + i, last - i, work.temporary);
    i = last + 1;
  }
  if (IsComposed(form)) {
    const utf8proc_ssize_t composed =
        utf8proc_normalize_utf32(work.characters, static_cast<utf8proc_ssize_t>(count), kCompose);
    if (composed < 0) return Status::kInternal;
    count = static_cast<size_t>(composed);
  }
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) {
    char character[4];
    const size_t bytes = WriteUtf8(static_cast<uint32_t>(work.characters[i]), character);
    if (bytes > out.size() - size) return Status::kBufferTooSmall;
    std::memcpy(out.data() + size, character, bytes);
    size += bytes;
  }
  *written = size;
  return Status::kOk;
}

size_t CharacterCapacity(size_t text_bytes) {
  return text_bytes * kCharactersPerTwoBytes / 2 + kMaxDecomposition;
}

}  // namespace

uint64_t NormalFormScratchBytes(size_t text_bytes) {
  return uint64_t{2} * CharacterCapacity(text_bytes) * sizeof(int32_t) + alignof(int32_t);
}

Status ToNormalForm(NormalForm form, StringView text, Span<char> buffer, Arena* scratch,
                    StringView* out) {
  const char* const end = text.data + text.size;
  const char* unstable = SkipStable(form, text.data, end);
  if (unstable == end) {
    *out = text;
    return Status::kOk;
  }
  Workspace work;
  work.capacity = CharacterCapacity(text.size);
  const uint64_t mark = scratch->mark();
  ARN_ASSIGN(void* memory,
             scratch->Allocate(2 * work.capacity * sizeof(int32_t), alignof(int32_t)));
  work.characters = static_cast<int32_t*>(memory);
  work.temporary = work.characters + work.capacity;

  const char* copied = text.data;
  size_t size = 0;
  while (unstable != end) {
    // A run: a character unaffected by what precedes it, and the affected ones after it.
    const bool begins = unstable == copied || BeginsRun(form, ReadValidUtf8(unstable).code_point);
    const char* const run = begins ? unstable : PreviousUtf8(unstable);
    const char* run_end = unstable + ReadValidUtf8(unstable).bytes;
    while (run_end != end) {
      const Utf8Char c = ReadValidUtf8(run_end);
      if (BeginsRun(form, c.code_point)) break;
      run_end += c.bytes;
    }
    const size_t before = static_cast<size_t>(run - copied);
    if (before > buffer.size() - size) return Status::kBufferTooSmall;
    std::memcpy(buffer.data() + size, copied, before);
    size += before;
    size_t written = 0;
    ARN_TRY(NormalizeRun(form, run, run_end, work, buffer.subspan(size, buffer.size() - size),
                         &written));
    size += written;
    copied = run_end;
    unstable = SkipStable(form, run_end, end);
  }
  const size_t rest = static_cast<size_t>(end - copied);
  if (rest > buffer.size() - size) return Status::kBufferTooSmall;
  if (rest > 0) std::memcpy(buffer.data() + size, copied, rest);
  size += rest;
  scratch->Rewind(mark);
  *out = StringView(buffer.data(), size);
  return Status::kOk;
}

}  // namespace arn
