#include "tools/arenite/sampling.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "CLI/CLI.hpp"
#include "tools/arenite/io.h"

namespace arn::tool {
namespace {

std::vector<arn_sampling_option_info> Table() {
  std::vector<arn_sampling_option_info> table(arn_sampling_option_count());
  for (uint32_t i = 0; i < table.size(); ++i) {
    table[i] = ARN_SAMPLING_OPTION_INFO_INIT;
    arn_sampling_get_option(i, &table[i]);
  }
  return table;
}

// "top_k" -> "top-k".
std::string Dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

const char* TypeName(uint32_t type) {
  switch (type) {
    case ARN_OPTION_FLOAT: return "FLOAT";
    case ARN_OPTION_INT32: return "INT";
    case ARN_OPTION_IDS: return "ID,ID,...";
    case ARN_OPTION_FLOATS: return "FLOAT,FLOAT,...";
    default: return "UINT";
  }
}

template <typename T>
T ParseNumber(const std::string& text, const std::string& flag) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    throw CLI::ValidationError(flag, "\"" + text + "\" is not a number of its type");
  }
  return value;
}

template <typename T>
std::vector<T> ParseList(const std::string& text, const std::string& flag) {
  std::vector<T> values;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(',', at), text.size());
    values.push_back(ParseNumber<T>(text.substr(at, end - at), flag));
    at = end + 1;
  }
  return values;
}

void Parse(const arn_sampling_option_info& option, const std::string& text,
           SamplingArguments::Value* out) {
  const std::string flag = "--" + Dashed(option.name);
  out->is_given = true;
  switch (option.type) {
    case ARN_OPTION_FLOAT: out->number = ParseNumber<double>(text, flag); break;
    case ARN_OPTION_INT32: out->number = ParseNumber<int32_t>(text, flag); break;
    case ARN_OPTION_UINT32: out->whole = ParseNumber<uint32_t>(text, flag); break;
    case ARN_OPTION_UINT64: out->whole = ParseNumber<uint64_t>(text, flag); break;
    case ARN_OPTION_IDS: out->ids = ParseList<int32_t>(text, flag); break;
    default: out->floats = ParseList<float>(text, flag); break;
  }
}

template <typename T>
void Put(T value, uint32_t offset, arn_sampling* out) {
  std::memcpy(reinterpret_cast<char*>(out) + offset, &value, sizeof value);
}
template <typename T>
T Get(const arn_sampling& from, uint32_t offset) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(&from) + offset, sizeof value);
  return value;
}

void Set(const arn_sampling_option_info& option, const SamplingArguments::Value& value,
         arn_sampling* out) {
  switch (option.type) {
    case ARN_OPTION_FLOAT: Put(static_cast<float>(value.number), option.offset, out); break;
    case ARN_OPTION_INT32: Put(static_cast<int32_t>(value.number), option.offset, out); break;
    case ARN_OPTION_UINT32: Put(static_cast<uint32_t>(value.whole), option.offset, out); break;
    case ARN_OPTION_UINT64: Put(value.whole, option.offset, out); break;
    case ARN_OPTION_IDS:
      Put(value.ids.data(), option.offset, out);
      Put(static_cast<uint32_t>(value.ids.size()), option.count_offset, out);
      break;
    default:
      Put(value.floats.data(), option.offset, out);
      Put(static_cast<uint32_t>(value.floats.size()), option.count_offset, out);
      break;
  }
}

// Returns the value as text; "" if it is off.
std::string ValueText(const arn_sampling_option_info& option, const arn_sampling& sampling) {
  const arn_sampling off = ARN_SAMPLING_INIT;
  if (option.count_offset != 0) {
    const auto n = Get<uint32_t>(sampling, option.count_offset);
    return n == 0 ? "" : Format("(%u)", n);
  }
  const auto is_off = [&](auto value) { return value == Get<decltype(value)>(off, option.offset); };
  switch (option.type) {
    case ARN_OPTION_FLOAT: {
      const auto value = Get<float>(sampling, option.offset);
      return is_off(value) ? "" : Format("%g", static_cast<double>(value));
    }
    case ARN_OPTION_INT32: {
      const auto value = Get<int32_t>(sampling, option.offset);
      return is_off(value) ? "" : Format("%d", value);
    }
    case ARN_OPTION_UINT32: {
      const auto value = Get<uint32_t>(sampling, option.offset);
      return is_off(value) ? "" : Format("%u", value);
    }
    default: {
      const auto value = Get<uint64_t>(sampling, option.offset);
      return is_off(value) ? "" : Format("%llu", static_cast<unsigned long long>(value));
    }
  }
}

bool IsSeed(const arn_sampling_option_info& option) {
  return option.offset == offsetof(arn_sampling, seed);
}

}  // namespace

CLI::Option_group* AddSamplingOptions(CLI::App* app, SamplingArguments* arguments) {
  const std::string note =
      "Flags that are not given take the checkpoint's values; a checkpoint that does not sample is "
      "greedy unless a flag that shapes the draw, such as --temperature, is given.";
  CLI::Option_group* group = app->add_option_group("sampling", note);
  const std::vector<arn_sampling_option_info> table = Table();
  arguments->values.resize(table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    const arn_sampling_option_info option = table[i];
    const std::string help = IsSeed(option)
                                 ? "Seed of the random numbers [a random one, which is printed]"
                                 : option.help;
    group
        ->add_option_function<std::string>(
            "--" + Dashed(option.name),
            [option, arguments, i](const std::string& text) {
              Parse(option, text, &arguments->values[i]);
            },
            help)
        ->type_name(TypeName(option.type));
  }
  group->add_option("--bad-word", arguments->bad_words,
                    "Text that is not generated, alone or behind a space; may be given again");
  group->add_option("--dry-breaker", arguments->dry_breakers,
                    "DRY: text that no repetition reaches across; may be given again");
  return group;
}

namespace {

// Returns the value of the option whose field of arn_sampling is at `offset`, as given.
SamplingArguments::Value* Given(size_t offset, SamplingArguments* arguments) {
  const std::vector<arn_sampling_option_info> table = Table();
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].offset != offset) continue;
    arguments->values[i].is_given = true;
    return &arguments->values[i];
  }
  throw Error("the library lacks a sampling option");
}

void AddSequence(const std::vector<int32_t>& ids, SamplingArguments::Value* value) {
  if (!value->ids.empty()) value->ids.push_back(-1);
  value->ids.insert(value->ids.end(), ids.begin(), ids.end());
}

// Adds the tokens that have the text in them, and those that end with its beginning, with the
// tokens of the rest (get_overlapping_token_sequences of ggml-org's sampler).
void AddDryBreaker(const std::string& text, const Model& model, SamplingArguments* arguments) {
  if (text.empty()) throw Error("--dry-breaker is empty");
  SamplingArguments::Value* const ids = Given(offsetof(arn_sampling, dry_breakers), arguments);
  SamplingArguments::Value* const sequences =
      Given(offsetof(arn_sampling, dry_breaker_sequences), arguments);
  const auto n = static_cast<int32_t>(model.info().vocab);
  for (int32_t id = 0; id < n; ++id) {
    const std::string token = model.Detokenize({id}, ARN_DETOKENIZE_SKIP_SPECIAL);
    if (token.find(text) != std::string::npos) {
      ids->ids.push_back(id);
      continue;
    }
    for (size_t size = 1; size < text.size() && size <= token.size(); ++size) {
      if (token.compare(token.size() - size, size, text, 0, size) != 0) continue;
      std::vector<int32_t> sequence =
          model.Tokenize(text.substr(size), ARN_TOKENIZE_NO_SPECIAL | ARN_TOKENIZE_PLAIN);
      sequence.insert(sequence.begin(), id);
      AddSequence(sequence, sequences);
    }
  }
}

}  // namespace

SamplingArguments WithTexts(SamplingArguments arguments, const Model& model) {
  for (const std::string& word : arguments.bad_words) {
    if (word.empty()) throw Error("--bad-word is empty");
    for (const std::string& text : {word, " " + word}) {
      AddSequence(model.Tokenize(text, ARN_TOKENIZE_NO_SPECIAL | ARN_TOKENIZE_PLAIN),
                  Given(offsetof(arn_sampling, bad_words), &arguments));
    }
  }
  for (const std::string& text : arguments.dry_breakers) AddDryBreaker(text, model, &arguments);
  arguments.bad_words.clear();
  arguments.dry_breakers.clear();
  return arguments;
}

std::vector<CLI::Option*> DrawOptions(CLI::Option_group* group) {
  std::vector<CLI::Option*> options;
  for (const arn_sampling_option_info& option : Table()) {
    if (option.is_for_draws == 0 && !IsSeed(option)) continue;
    options.push_back(group->get_option("--" + Dashed(option.name)));
  }
  return options;
}

bool IsGiven(const SamplingArguments& arguments) {
  return !arguments.bad_words.empty() || !arguments.dry_breakers.empty() ||
         std::any_of(arguments.values.begin(), arguments.values.end(),
                     [](const auto& value) { return value.is_given; });
}

arn_sampling ChooseSampling(const SamplingArguments& arguments, const arn_model* model) {
  const std::vector<arn_sampling_option_info> table = Table();
  bool asks = false, has_seed = false;
  for (size_t i = 0; i < arguments.values.size(); ++i) {
    if (!arguments.values[i].is_given) continue;
    asks = asks || table[i].is_for_draws != 0;
    has_seed = has_seed || IsSeed(table[i]);
  }
  arn_sampling sampling = ARN_SAMPLING_INIT;
  if (asks) {
    arn_model_sampling_defaults(model, &sampling);
  } else {
    arn_model_sampling(model, &sampling);
  }
  for (size_t i = 0; i < arguments.values.size(); ++i) {
    if (arguments.values[i].is_given) Set(table[i], arguments.values[i], &sampling);
  }
  if (sampling.temperature != 0.0f && !has_seed) sampling.seed = arn_random_seed();
  return sampling;
}

void ReserveSampling(const arn_sampling& sampling, arn_session_options* options) {
  for (const arn_sampling_option_info& option : Table()) {
    const bool is_on = !ValueText(option, sampling).empty();
    if (is_on && option.is_processor != 0) options->logits_processors = 1;
    if (option.count_offset != 0) {
      options->sampling_words += Get<uint32_t>(sampling, option.count_offset);
    }
  }
}

void WriteSampling(const arn_sampling& sampling, JsonWriter* json) {
  for (const arn_sampling_option_info& option : Table()) {
    if (IsSeed(option)) continue;
    json->Key(option.name);
    switch (option.type) {
      case ARN_OPTION_FLOAT:
        json->Number(static_cast<double>(Get<float>(sampling, option.offset)));
        break;
      case ARN_OPTION_INT32: json->Int(Get<int32_t>(sampling, option.offset)); break;
      case ARN_OPTION_UINT32: json->Uint(Get<uint32_t>(sampling, option.offset)); break;
      case ARN_OPTION_UINT64: json->Uint(Get<uint64_t>(sampling, option.offset)); break;
      default: {
        const auto n = Get<uint32_t>(sampling, option.count_offset);
        json->BeginArray();
        for (uint32_t i = 0; i < n; ++i) {
          if (option.type == ARN_OPTION_IDS) {
            json->Int(Get<const int32_t*>(sampling, option.offset)[i]);
          } else {
            json->Number(static_cast<double>(Get<const float*>(sampling, option.offset)[i]));
          }
        }
        json->EndArray();
      }
    }
  }
}

std::string DescribeSettings(const arn_sampling& sampling) {
  std::string text;
  for (const arn_sampling_option_info& option : Table()) {
    const std::string value = ValueText(option, sampling);
    const bool is_ignored = sampling.temperature == 0.0f && option.is_for_draws != 0;
    if (value.empty() || is_ignored || IsSeed(option)) continue;
    if (!text.empty()) text += ", ";
    text += Dashed(option.name) + " " + value;
  }
  return text;
}

std::string DescribeSampling(const arn_sampling& sampling) {
  const std::string text = DescribeSettings(sampling);
  if (sampling.temperature == 0.0f) return text;
  return text + Format(", seed %llu", static_cast<unsigned long long>(sampling.seed));
}

}  // namespace arn::tool
