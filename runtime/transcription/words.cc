#include "runtime/transcription/words.h"

#include <cstring>

namespace arn {
namespace {

constexpr StringView kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
// Punctuation that belongs to the word behind it, or to that before it.
constexpr StringView kOpening = "\"'“¡¿([{-", kClosing = "\"'.。,，!！?？:：”)]}、";

constexpr const char* kWithoutSpaces[] = {"zh", "ja", "th", "lo", "my", "yue"};

StringView TextOfWord(StringView text, const Word& word) {
  return {text.data + word.offset, word.bytes};
}

bool IsWhite(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

StringView Stripped(StringView text) {
  while (text.size > 0 && IsWhite(text.data[0])) text = {text.data + 1, text.size - 1};
  while (text.size > 0 && IsWhite(text.data[text.size - 1])) --text.size;
  return text;
}

// True if `all` has the text as a whole.
bool IsIn(StringView text, StringView all) {
  for (size_t i = 0; i + text.size <= all.size; ++i) {
    if (std::memcmp(all.data + i, text.data, text.size) == 0) return true;
  }
  return false;
}

bool BeginsWithSpace(StringView text) { return text.size > 0 && text.data[0] == ' '; }
bool EndsWithSpace(StringView text) { return text.size > 0 && text.data[text.size - 1] == ' '; }

// Appends the word behind it.
void Append(const Word& next, Word* word) {
  word->bytes = next.offset + next.bytes - word->offset;
  word->n_ids = next.first_id + next.n_ids - word->first_id;
}

size_t JoinBySpaces(StringView text, Span<Word> words) {
  size_t n = 0;
  for (const Word& piece : words) {
    const StringView piece_text = TextOfWord(text, piece);
    if (n == 0 || BeginsWithSpace(piece_text) || IsIn(Stripped(piece_text), kPunctuation)) {
      words[n++] = piece;
    } else {
      Append(piece, &words[n - 1]);
    }
  }
  return n;
}

// From the last word on, so that several belong to the same one.
size_t JoinOpening(StringView text, Span<Word> words) {
  size_t first = words.size() - 1;  // of those that are done
  for (size_t i = words.size() - 1; i-- > 0;) {
    const StringView word = TextOfWord(text, words[i]);
    if (BeginsWithSpace(word) && IsIn(Stripped(word), kOpening)) {
      Append(words[first], &words[i]);
      words[first] = words[i];
    } else {
      words[--first] = words[i];
    }
  }
  const size_t n = words.size() - first;
  std::memmove(static_cast<void*>(words.data()), words.data() + first, n * sizeof(Word));
  return n;
}

size_t JoinClosing(StringView text, Span<Word> words) {
  size_t n = 1;
  for (size_t i = 1; i < words.size(); ++i) {
    Word& last = words[n - 1];
    if (!EndsWithSpace(TextOfWord(text, last)) && IsIn(TextOfWord(text, words[i]), kClosing)) {
      Append(words[i], &last);
    } else {
      words[n++] = words[i];
    }
  }
  return n;
}

}  // namespace

bool HasNoSpaces(StringView language) {
  for (const char* const name : kWithoutSpaces) {
    if (language == StringView(name, std::strlen(name))) return true;
  }
  return false;
}

size_t JoinWords(StringView text, bool has_spaces, Span<Word> pieces) {
  size_t n = has_spaces ? JoinBySpaces(text, pieces) : pieces.size();
  if (n == 0) return 0;
  n = JoinOpening(text, pieces.subspan(0, n));
  return JoinClosing(text, pieces.subspan(0, n));
}

}  // namespace arn
