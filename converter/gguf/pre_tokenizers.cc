#include "converter/gguf/pre_tokenizers.h"

#include <vector>

#include "converter/base/error.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// Words with one leading character, digits, punctuation, white space.
std::string WordsAndMarks(const char* digits) {
  return std::string(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)") + digits +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

// The same, with the marks of letters.
std::string WordsOfLettersAndMarks() {
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
         R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

// As WordsAndMarks, also split before upper case; `behind`: pattern allowed after a word.
std::string WordsByCase(const char* digits, const char* behind) {
  const std::string before = R"([^\r\n\p{L}\p{N}]?)", upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])",
                    lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  return before + upper + "*" + lower + "+" + behind + "|" + before + upper + "+" + lower + "*" +
         behind + "|" + digits + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

constexpr char kDigit[] = R"(\p{N})";
constexpr char kUpTo3Digits[] = R"(\p{N}{1,3})";

// Pre-tokenisation before ByteLevel.
enum class Cut : uint8_t {
  kNothing,  // ByteLevel splits by its own pattern
  kDigits,   // single digits, then ByteLevel's own pattern
  kWords,
  kWordsOfDigitGroups,
  kWordsOfLettersAndMarks,
  kByCase,
  kByCaseOfDigitGroups,
  kDefault,  // llama.cpp's rule for files without a name
};

struct Row {
  const char* name;
  Cut cut;
  bool composes = false;  // Unicode NFC
  bool ignore_merges = false;
  bool adds_bos = false;
};
constexpr Row kRows[] = {
    {"default", Cut::kDefault},
    {"gpt-2", Cut::kNothing},
    {"phi-2", Cut::kNothing},
    {"olmo", Cut::kNothing, true},
    {"mpt", Cut::kNothing, true},
    {"smollm", Cut::kDigits},
    {"starcoder", Cut::kDigits},
    {"refact", Cut::kDigits},
    {"codeshell", Cut::kDigits},
    {"command-r", Cut::kDigits, true},
    {"llama-bpe", Cut::kWordsOfDigitGroups, false, true, true},
    {"llama3", Cut::kWordsOfDigitGroups, false, true, true},
    {"llama-v3", Cut::kWordsOfDigitGroups, false, true, true},
    {"lfm2", Cut::kWordsOfDigitGroups, false, true, true},
    {"smaug-bpe", Cut::kWordsOfDigitGroups},
    {"dbrx", Cut::kWordsOfDigitGroups},
    {"qwen2", Cut::kWords, true},
    {"deepseek-r1-qwen", Cut::kWords, true},
    {"qwen35", Cut::kWordsOfLettersAndMarks, true},
    {"tekken", Cut::kByCase, false, true},
    {"gpt-4o", Cut::kByCaseOfDigitGroups},
    {"llama4", Cut::kByCaseOfDigitGroups, false, true},
};

nlohmann::json Split(const std::string& regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

nlohmann::json ByteLevel(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

nlohmann::json Steps(const Row& row) {
  nlohmann::json steps = nlohmann::json::array();
  switch (row.cut) {
    case Cut::kNothing: break;
    case Cut::kDigits: steps.push_back({{"type", "Digits"}, {"individual_digits", true}}); break;
    case Cut::kWords: steps.push_back(Split(WordsAndMarks(kDigit))); break;
    case Cut::kWordsOfDigitGroups: steps.push_back(Split(WordsAndMarks(kUpTo3Digits))); break;
    case Cut::kWordsOfLettersAndMarks: steps.push_back(Split(WordsOfLettersAndMarks())); break;
    case Cut::kByCase: steps.push_back(Split(WordsByCase(kDigit, ""))); break;
    case Cut::kByCaseOfDigitGroups:
      steps.push_back(Split(WordsByCase(kUpTo3Digits, "(?i:'s|'t|'re|'ve|'m|'ll|'d)?")));
      break;
    case Cut::kDefault:
      for (const char* regex :
           {R"([\p{P}\$\+<=>\^~\|]+)",
            R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))",
            R"(\p{N}+)", "[0-9][0-9][0-9]"}) {
        steps.push_back(Split(regex));
      }
      break;
  }
  steps.push_back(ByteLevel(row.cut == Cut::kNothing || row.cut == Cut::kDigits));
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

}  // namespace

std::optional<GgufPreTokenizer> FindPreTokenizer(const std::string& name) {
  for (const Row& row : kRows) {
    if (name != row.name) continue;
    GgufPreTokenizer found;
    if (row.composes) found.normalizer = {{"type", "NFC"}};
    found.pre_tokenizer = Steps(row);
    found.ignore_merges = row.ignore_merges;
    found.adds_bos = row.adds_bos;
    return found;
  }
  return std::nullopt;
}

std::string PreTokenizerNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return JoinNames(names, names.size());
}

}  // namespace arn::convert
