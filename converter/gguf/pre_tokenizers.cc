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

// Patterns of splits that follow each other.
using Patterns = std::vector<std::string>;

Patterns Words() { return {WordsAndMarks(kDigit)}; }
Patterns WordsOfDigitGroups() { return {WordsAndMarks(kUpTo3Digits)}; }
Patterns WordsWithMarks() { return {WordsOfLettersAndMarks()}; }
Patterns ByCase() { return {WordsByCase(kDigit, "")}; }

constexpr char kEndings[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
Patterns ByCaseOfDigitGroups() { return {WordsByCase(kUpTo3Digits, kEndings)}; }

// Digits in groups of three from the right first.
Patterns DigitGroupsFromTheRight() {
  return {R"(\d{1,3}(?=(?:\d{3})*\b))", WordsByCase(kUpTo3Digits, kEndings)};
}

// llama.cpp's rule for files without a name.
Patterns Default() {
  return {R"([\p{P}\$\+<=>\^~\|]+)",
          R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))", R"(\p{N}+)",
          "[0-9][0-9][0-9]"};
}

// Digits, Chinese and Japanese, and then words.
Patterns Deepseek3() {
  return {kUpTo3Digits, R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
          R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
          R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
          R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};
}

// Letters with a case, of which later versions of Unicode have more.
constexpr char kCasedLetters[] =
    "A-Za-z"
    R"(\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"
    R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})"
    R"(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
    R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
    R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139})"
    R"(\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B})"
    R"(\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"
    R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
    R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})";

Patterns DeepseekLlm() {
  return {R"([\r\n])",
          std::string(R"(\s?[)") + kCasedLetters + "]+",
          R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
          R"(\s+$)",
          R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
          kDigit};
}

Patterns DeepseekCoder() {
  return {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
          R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", kDigit};
}

// Scripts of the Far East and their punctuation, and then words by case.
Patterns Youtu() {
  return {R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|)"
          R"([\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C})"
          R"(\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|)"
          R"([\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
          WordsByCase(kDigit, kEndings)};
}

// Punctuation ends before a line does.
Patterns SeedCoder() {
  return {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
          R"( ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
}

// Words may have spaces between single letters.
Patterns ExaoneMoe() {
  return {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|)"
          R"([^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|)"
          R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
}

// Blanks in powers of two.
Patterns Jais2() {
  std::string words = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                      R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)";
  for (int n = 512; n >= 4; n /= 2) words += R"(|\s{)" + std::to_string(n) + R"(}(?!\S))";
  return {words + R"(|\s{1,2}(?!\S)|\s{1})"};
}

Patterns LinesThenWords() { return {R"([^\n]+|[\n]+)", WordsAndMarks(kDigit)}; }
Patterns DigitsThenWords() { return {kUpTo3Digits, WordsAndMarks(R"(\p{N}+)")}; }

constexpr char kBloomWords[] =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";
Patterns Bloom() { return {kBloomWords}; }
Patterns BloomThenDigits() { return {kBloomWords, kDigit}; }

nlohmann::json FalconSteps();

// Pre-tokenisation before ByteLevel, which splits by its own pattern if there are no patterns.
struct Row {
  const char* name;
  Patterns (*patterns)() = nullptr;
  bool splits_digits = false;  // single digits first
  bool composes = false;       // Unicode NFC
  bool ignore_merges = false;
  bool adds_bos = false;
  nlohmann::json (*steps)() = nullptr;  // all, in place of patterns and ByteLevel
};
constexpr Row Plain(const char* name, bool composes = false) {
  return {.name = name, .composes = composes};
}
constexpr Row Digits(const char* name, bool composes = false) {
  return {.name = name, .splits_digits = true, .composes = composes};
}
constexpr Row Llama3(const char* name) {
  return {.name = name, .patterns = WordsOfDigitGroups, .ignore_merges = true, .adds_bos = true};
}
constexpr Row kRows[] = {
    {.name = "default", .patterns = Default},
    Plain("gpt-2"),
    Plain("phi-2"),
    Plain("exaone4"),
    Plain("trillion"),
    Plain("granite-docling"),
    Plain("gigachat"),
    Plain("a.x-4.0"),
    Plain("mellum"),
    Plain("roberta-bpe"),
    Plain("olmo", true),
    Plain("mpt", true),
    Plain("modern-bert", true),
    Digits("smollm"),
    Digits("starcoder"),
    Digits("refact"),
    Digits("codeshell"),
    Digits("minerva-7b"),
    Digits("mellum2"),
    Digits("command-r", true),
    Llama3("llama-bpe"),
    Llama3("llama3"),
    Llama3("llama-v3"),
    Llama3("lfm2"),
    Llama3("falcon3"),
    Llama3("falcon-h1"),
    Llama3("pixtral"),
    Llama3("midm-2.0"),
    {.name = "smaug-bpe", .patterns = WordsOfDigitGroups},
    {.name = "dbrx", .patterns = WordsOfDigitGroups},
    {.name = "glm4", .patterns = WordsOfDigitGroups},
    {.name = "chatglm-bpe", .patterns = WordsOfDigitGroups},
    {.name = "jais-2", .patterns = Jais2},
    {.name = "hunyuan", .patterns = Words},
    {.name = "solar-open", .patterns = Words},
    {.name = "stablelm2", .patterns = Words},
    {.name = "qwen2", .patterns = Words, .composes = true},
    {.name = "deepseek-r1-qwen", .patterns = Words, .composes = true},
    {.name = "qwen35", .patterns = WordsWithMarks, .composes = true},
    {.name = "minicpm5", .patterns = DigitsThenWords, .ignore_merges = true},
    {.name = "laguna", .patterns = LinesThenWords},
    {.name = "seed-coder", .patterns = SeedCoder},
    {.name = "exaone-moe", .patterns = ExaoneMoe},
    {.name = "deepseek-llm", .patterns = DeepseekLlm},
    {.name = "deepseek-coder", .patterns = DeepseekCoder},
    {.name = "deepseek-v3", .patterns = Deepseek3},
    {.name = "hunyuan-dense", .patterns = Deepseek3},
    {.name = "joyai-llm", .patterns = Deepseek3},
    {.name = "youtu", .patterns = Youtu, .ignore_merges = true},
    {.name = "tekken", .patterns = ByCase, .ignore_merges = true},
    {.name = "gpt-4o", .patterns = ByCaseOfDigitGroups},
    {.name = "kanana2", .patterns = ByCaseOfDigitGroups},
    {.name = "minimax-m2", .patterns = ByCaseOfDigitGroups},
    {.name = "llama4", .patterns = ByCaseOfDigitGroups, .ignore_merges = true},
    {.name = "tiny_aya", .patterns = DigitGroupsFromTheRight},
    {.name = "cohere2moe", .patterns = DigitGroupsFromTheRight},
    {.name = "bloom", .patterns = Bloom},
    {.name = "poro-chat", .patterns = Bloom},
    {.name = "gpt3-finnish", .patterns = Bloom},
    {.name = "viking", .patterns = BloomThenDigits},
    {.name = "falcon", .steps = FalconSteps},
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

// Digits in groups of three, behind ByteLevel.
nlohmann::json FalconSteps() {
  return {{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
          ByteLevel(/*use_regex=*/true),
          {{"type", "Digits"}, {"individual_digits", false}},
          Split("[0-9][0-9][0-9]")};
}

nlohmann::json Steps(const Row& row) {
  if (row.steps != nullptr) return {{"type", "Sequence"}, {"pretokenizers", row.steps()}};
  nlohmann::json steps = nlohmann::json::array();
  if (row.splits_digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (row.patterns != nullptr) {
    for (const std::string& regex : row.patterns()) steps.push_back(Split(regex));
  }
  steps.push_back(ByteLevel(/*use_regex=*/row.patterns == nullptr));
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
