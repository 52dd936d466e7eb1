#include "tools/serve/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "tools/arenite/sampling.h"
#include "tools/cli/format.h"

namespace arn::serve {
namespace {

template <typename T>
void Put(T value, uint32_t offset, arn_sampling* out) {
  std::memcpy(reinterpret_cast<char*>(out) + offset, &value, sizeof value);
}

// Ranges that OpenAI's API gives; the others are the library's, which names what it refuses.
struct Range {
  const char* name;
  double least, most;
};
constexpr Range kRanges[] = {{"temperature", 0, 2},
                             {"top_p", 0, 1},
                             {"frequency_penalty", -2, 2},
                             {"presence_penalty", -2, 2}};

Range RangeOf(const char* name) {
  for (const Range& range : kRanges) {
    if (std::strcmp(range.name, name) == 0) return range;
  }
  constexpr double kMost = std::numeric_limits<float>::max();
  return {name, -kMost, kMost};
}

bool ReadOption(const arn_sampling_option_info& option, Fields* fields, arn_sampling* out) {
  switch (option.type) {
    case ARN_OPTION_FLOAT: {
      const Range range = RangeOf(option.name);
      const auto value = fields->Number(option.name, range.least, range.most);
      if (value) Put(static_cast<float>(*value), option.offset, out);
      return value.has_value();
    }
    case ARN_OPTION_UINT32: {
      const auto value = fields->Whole(option.name, 0, UINT32_MAX);
      if (value) Put(static_cast<uint32_t>(*value), option.offset, out);
      return value.has_value();
    }
    default: return false;
  }
}

void ReadBias(uint32_t vocab, Fields* fields, Settings* settings) {
  const Json* bias = fields->Find("logit_bias");
  if (bias == nullptr) return;
  const std::string path = fields->PathOf("logit_bias");
  if (!bias->is_object()) throw BadField(path, "is " + KindOf(*bias) + ", expected an object");
  if (bias->size() > kMaxBiases) {
    throw BadField(path, cli::Format("has %zu tokens, at most %u", bias->size(), kMaxBiases));
  }
  // Behind the checkpoint's own.
  arn_sampling& sampling = settings->sampling;
  settings->bias_ids.assign(sampling.bias_ids, sampling.bias_ids + sampling.n_bias_ids);
  settings->bias_values.assign(sampling.bias_values, sampling.bias_values + sampling.n_bias_values);
  for (const auto& [key, value] : bias->items()) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const std::string at = path + "." + key;
    if (error != std::errc() || end != key.data() + key.size() || id < 0 ||
        static_cast<uint32_t>(id) >= vocab) {
      throw BadField(at, cli::Format("is not a token id below %u", vocab));
    }
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100)) {
      throw BadField(at, "is not a number from -100 to 100");
    }
    if (!settings->bias_ids.empty()) settings->bias_ids.push_back(-1);
    settings->bias_ids.push_back(id);
    settings->bias_values.push_back(value.get<float>());
  }
  sampling.bias_ids = settings->bias_ids.data();
  sampling.n_bias_ids = static_cast<uint32_t>(settings->bias_ids.size());
  sampling.bias_values = settings->bias_values.data();
  sampling.n_bias_values = static_cast<uint32_t>(settings->bias_values.size());
}

}  // namespace

void ReadSampling(const arn_model* model, uint32_t vocab, Fields* fields, Settings* settings) {
  arn_sampling given = ARN_SAMPLING_INIT;
  std::vector<arn_sampling_option_info> found;
  bool asks_for_draws = false;
  for (uint32_t i = 0; i < arn_sampling_option_count(); ++i) {
    arn_sampling_option_info option = ARN_SAMPLING_OPTION_INFO_INIT;
    arn_sampling_get_option(i, &option);
    if (option.offset == offsetof(arn_sampling, seed)) continue;
    if (!ReadOption(option, fields, &given)) continue;
    found.push_back(option);
    asks_for_draws = asks_for_draws || option.is_for_draws != 0;
  }
  arn_sampling& sampling = settings->sampling;
  if (asks_for_draws) {
    arn_model_sampling_defaults(model, &sampling);
  } else {
    arn_model_sampling(model, &sampling);
  }
  for (const arn_sampling_option_info& option : found) {
    // Both types have four bytes.
    std::memcpy(reinterpret_cast<char*>(&sampling) + option.offset,
                reinterpret_cast<const char*>(&given) + option.offset, sizeof(uint32_t));
  }
  // OpenAI allows 0, which leaves the most likely token.
  if (sampling.top_p <= 0.0f) sampling.top_p = std::numeric_limits<float>::min();
  ReadBias(vocab, fields, settings);
  const Json* seed = fields->Find("seed");
  if (seed == nullptr) {
    sampling.seed = sampling.temperature != 0.0f ? arn_random_seed() : 0;
  } else if (seed->is_number_integer()) {
    sampling.seed = seed->is_number_unsigned() ? seed->get<uint64_t>()
                                               : static_cast<uint64_t>(seed->get<int64_t>());
  } else {
    throw BadField(fields->PathOf("seed"), "is " + KindOf(*seed) + ", expected a whole number");
  }
}

void ReserveForRequests(const arn_model* model, arn_session_options* options) {
  arn_sampling own = ARN_SAMPLING_INIT;
  arn_model_sampling_defaults(model, &own);
  tool::ReserveSampling(own, options);
  options->logits_processors = 1;
  options->sampling_words += 3 * kMaxBiases;  // an id, a separator and a value for each
}

}  // namespace arn::serve
