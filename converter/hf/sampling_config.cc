#include "converter/hf/sampling_config.h"

#include <cstring>
#include <limits>

#include "nlohmann/json.hpp"
#include "runtime/sampling/option_range.h"

namespace arn::convert {
namespace {

template <typename T>
std::vector<uint32_t> WordsOf(const T* values, size_t n) {
  std::vector<uint32_t> words(n * sizeof(T) / sizeof(uint32_t));
  if (n != 0) std::memcpy(words.data(), values, n * sizeof(T));
  return words;
}

// Fields of the bundle's Generation table, which ReadGeneration reads.
bool HasOwnField(const std::string& name) {
  return name == "temperature" || name == "top_k" || name == "top_p" || name == "min_p" ||
         name == "seed";
}

class Reader {
 public:
  explicit Reader(const SamplingSource& source) : source_(source), from_(*source.from) {}

  template <typename T>
  void Scalar(uint32_t id, const std::string& name, T off, const OptionRange& range) {
    if (HasOwnField(name)) return;
    T value = off;
    if (name == "forced_first") {
      if (source_.has_start_ids) Token("forced_bos_token_id", &value);
    } else if (name == "forced_last") {
      Token("forced_eos_token_id", &value);
    } else {
      Number(name, range, &value);
    }
    if (value != off) entries_.push_back({id, WordsOf(&value, 1)});
  }

  template <typename T>
  void List(uint32_t id, const std::string& name) {
    std::vector<uint32_t> words;
    if (name == "bad_words") {
      words = Sequences("bad_words_ids", false);
    } else if (name == "bias_ids") {
      words = Sequences("sequence_bias", true);
    } else if (name == "bias_values") {
      words = BiasValues();
    } else if (from_.Has(name)) {
      words = source_.ids(name.c_str());
    }
    if (!words.empty()) entries_.push_back({id, std::move(words)});
  }

  std::vector<SamplingEntry> Take() { return std::move(entries_); }

 private:
  template <typename T>
  void Number(const std::string& name, const OptionRange& range, T* value) {
    const std::optional<double> number = from_.Number(name);
    if (!number) return;
    char expected[64];
    range.Describe(expected, sizeof expected);
    const bool is_whole = !std::is_integral_v<T> || std::floor(*number) == *number;
    const auto most = static_cast<double>(std::numeric_limits<T>::max());
    const auto least = static_cast<double>(std::numeric_limits<T>::lowest());
    if (!range.Has(*number) || !is_whole || *number > most || *number < least) {
      from_.FailKey(name, expected);
    }
    *value = static_cast<T>(*number);
  }

  template <typename T>
  void Token(const char* key, T* value) {
    const std::vector<uint32_t> ids = source_.ids(key);
    if (ids.size() > 1) from_.FailKey(key, "one token id");
    if (!ids.empty()) *value = static_cast<T>(ids[0]);
  }

  // Reads [[id, ...], ...], or with values [[[id, ...], value], ...]; -1 separates the sequences.
  std::vector<uint32_t> Sequences(const char* key, bool has_values) {
    std::vector<uint32_t> words;
    const nlohmann::json* list = from_.Find(key);
    if (list == nullptr) return words;
    const char* expected =
        has_values ? "a list of [[token id, ...], number]" : "a list of lists of token ids";
    if (!list->is_array()) from_.FailKey(key, expected);
    for (const nlohmann::json& element : *list) {
      const bool is_pair = element.is_array() && element.size() == 2 && element[0].is_array() &&
                           element[1].is_number();
      if (has_values && !is_pair) from_.FailKey(key, expected);
      const nlohmann::json& ids = has_values ? element[0] : element;
      if (!ids.is_array() || ids.empty()) from_.FailKey(key, expected);
      if (!words.empty()) words.push_back(UINT32_MAX);
      for (const nlohmann::json& id : ids) {
        if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
            id.get<int64_t>() >= int64_t{source_.vocab}) {
          from_.FailKey(key, "token ids below the vocabulary's size");
        }
        words.push_back(id.get<uint32_t>());
      }
    }
    return words;
  }

  std::vector<uint32_t> BiasValues() {
    std::vector<float> values;
    if (const nlohmann::json* list = from_.Find("sequence_bias")) {
      for (const nlohmann::json& pair : *list) values.push_back(pair[1].get<float>());
    }
    return WordsOf(values.data(), values.size());
  }

  const SamplingSource& source_;
  ConfigReader& from_;
  std::vector<SamplingEntry> entries_;
};

}  // namespace

std::vector<SamplingEntry> ReadSamplingOptions(const SamplingSource& source) {
  Reader reader(source);
#define ARN_SCALAR(id, type, name, off, range, flags, help) \
  reader.Scalar<type>(id, #name, off, range);
#define ARN_LIST(id, type, name, flags, help) reader.List<type>(id, #name);
#include "runtime/sampling/options.def"
  return reader.Take();
}

}  // namespace arn::convert
