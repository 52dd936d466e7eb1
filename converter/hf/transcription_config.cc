#include "converter/hf/transcription_config.h"

#include <optional>
#include <string_view>

#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

// "<|en|>" -> "en".
std::string NameOf(const std::string& token) {
  constexpr std::string_view kBegin = "<|", kEnd = "|>";
  const std::string_view text = token;
  if (text.size() <= kBegin.size() + kEnd.size() || text.substr(0, kBegin.size()) != kBegin ||
      text.substr(text.size() - kEnd.size()) != kEnd) {
    return token;
  }
  return token.substr(kBegin.size(), token.size() - kBegin.size() - kEnd.size());
}

bool IsToken(const nlohmann::json& value, uint32_t vocab) {
  return value.is_number_integer() && value >= 0 && value < vocab;
}

// Returns the map of `key`; null if it is absent.
const nlohmann::json* TokenMap(ConfigReader* from, const char* key, uint32_t vocab) {
  const nlohmann::json* map = from->Find(key);
  if (map == nullptr) return nullptr;
  bool is_valid = map->is_object();
  for (auto entry = map->begin(); is_valid && entry != map->end(); ++entry) {
    is_valid = IsToken(entry.value(), vocab) && !entry.key().empty();
  }
  if (!is_valid) from->FailKey(key, "an object of names and ids of the vocabulary");
  return map;
}

}  // namespace

TranscriptionSpec ReadTranscription(ConfigReader* from, uint32_t vocab) {
  TranscriptionSpec spec;
  const bool is_multilingual = from->Bool("is_multilingual", true);
  const nlohmann::json* languages = TokenMap(from, "lang_to_id", vocab);
  const nlohmann::json* tasks = TokenMap(from, "task_to_id", vocab);
  const std::optional<int64_t> latest = from->Int("max_initial_timestamp_index");
  if (latest && (*latest < 0 || *latest > INT32_MAX)) {
    from->FailKey("max_initial_timestamp_index", "a whole number, 0 or more");
  }
  const std::optional<int64_t> no_timestamps = from->Int("no_timestamps_token_id");
  if (!no_timestamps) return spec;
  if (*no_timestamps < 0 || *no_timestamps + 1 >= int64_t{vocab}) {
    from->FailKey("no_timestamps_token_id", "a token of the vocabulary with others above it");
  }
  spec.exists = true;
  spec.no_timestamps_id = static_cast<uint32_t>(*no_timestamps);
  if (latest) spec.max_initial_timestamp = static_cast<int32_t>(*latest);
  if (!is_multilingual) return spec;
  if (languages != nullptr) {
    for (const auto& [token, id] : languages->items()) {
      spec.languages.push_back({NameOf(token), id.get<uint32_t>()});
      if (spec.languages.back().name.size() > SpeechLanguage::kMaxNameBytes) {
        from->FailKey("lang_to_id", "names of at most 11 letters");
      }
    }
  }
  if (tasks != nullptr) {
    spec.transcribe_id = tasks->value("transcribe", -1);
    spec.translate_id = tasks->value("translate", -1);
  }
  return spec;
}

}  // namespace arn::convert
