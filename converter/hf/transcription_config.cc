#include "converter/hf/transcription_config.h"

#include <optional>
#include <string_view>
#include <utility>

#include "converter/base/error.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr int64_t kMaxMedian = 31;

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

std::vector<AlignmentHead> AlignmentHeads(ConfigReader* from, ConfigReader* config,
                                          std::vector<std::string>* warnings) {
  std::vector<AlignmentHead> heads;
  const nlohmann::json* list = from->Find("alignment_heads");
  if (list == nullptr) return heads;
  const auto is_index = [](const nlohmann::json& value) {
    return value.is_number_integer() && value >= 0 && value <= UINT16_MAX;
  };
  bool is_valid = list->is_array() && list->size() <= UINT16_MAX;
  for (auto pair = list->begin(); is_valid && pair != list->end(); ++pair) {
    is_valid =
        pair->is_array() && pair->size() == 2 && is_index((*pair)[0]) && is_index((*pair)[1]);
    if (is_valid) heads.push_back({(*pair)[0].get<uint16_t>(), (*pair)[1].get<uint16_t>()});
  }
  if (!is_valid) from->FailKey("alignment_heads", "pairs of a layer and a head");
  const int64_t n_layers = config->Int("decoder_layers").value_or(INT64_MAX);
  const int64_t n_heads = config->Int("decoder_attention_heads").value_or(INT64_MAX);
  for (const AlignmentHead& head : heads) {
    if (head.layer < n_layers && head.head < n_heads) continue;
    warnings->push_back(Format(
        "%s: alignment_heads has [%u, %u], the decoder has %lld layers of %lld heads: words will "
        "have no times",
        from->label().c_str(), head.layer, head.head, static_cast<long long>(n_layers),
        static_cast<long long>(n_heads)));
    return {};
  }
  return heads;
}

// Returns -1 if there is none.
int32_t PreviousId(ConfigReader* from, uint32_t vocab) {
  if (from->Find("prev_sot_token_id") != nullptr) {
    const std::optional<int64_t> id = from->Int("prev_sot_token_id");
    if (!id) return -1;
    if (*id < 0 || *id >= int64_t{vocab}) {
      from->FailKey("prev_sot_token_id", "a token of the vocabulary");
    }
    return static_cast<int32_t>(*id);
  }
  const nlohmann::json* suppressed = from->Find("suppress_tokens");
  if (suppressed == nullptr || !suppressed->is_array() || suppressed->size() < 2) return -1;
  const nlohmann::json& id = (*suppressed)[suppressed->size() - 2];
  return IsToken(id, vocab) ? id.get<int32_t>() : -1;
}

}  // namespace

TranscriptionSpec ReadTranscription(ConfigReader* from, ConfigReader* config, uint32_t vocab,
                                    std::vector<std::string>* warnings) {
  TranscriptionSpec spec;
  const bool is_multilingual = from->Bool("is_multilingual", true);
  const nlohmann::json* languages = TokenMap(from, "lang_to_id", vocab);
  const nlohmann::json* tasks = TokenMap(from, "task_to_id", vocab);
  const std::optional<int64_t> latest = from->Int("max_initial_timestamp_index");
  if (latest && (*latest < 0 || *latest > INT32_MAX)) {
    from->FailKey("max_initial_timestamp_index", "a whole number, 0 or more");
  }
  std::vector<AlignmentHead> heads = AlignmentHeads(from, config, warnings);
  const int32_t previous_id = PreviousId(from, vocab);
  const std::optional<int64_t> no_timestamps = from->Int("no_timestamps_token_id");
  if (!no_timestamps) return spec;
  if (*no_timestamps < 0 || *no_timestamps + 1 >= int64_t{vocab}) {
    from->FailKey("no_timestamps_token_id", "a token of the vocabulary with others above it");
  }
  spec.exists = true;
  spec.alignment_heads = std::move(heads);
  if (const auto width = config->Int("median_filter_width");
      width && !spec.alignment_heads.empty()) {
    if (*width < 1 || *width > kMaxMedian || *width % 2 == 0) {
      config->FailKey("median_filter_width", "an odd number from 1 to 31");
    }
    spec.alignment_median = static_cast<uint32_t>(*width);
  }
  spec.no_timestamps_id = static_cast<uint32_t>(*no_timestamps);
  if (latest) spec.max_initial_timestamp = static_cast<int32_t>(*latest);
  spec.previous_id = previous_id;
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
