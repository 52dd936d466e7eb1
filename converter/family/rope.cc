#include "converter/family/rope.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "kernels/math/rope_frequencies.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

constexpr double kPi = 3.141592653589793;

struct RopeInput {
  double theta = 0;
  uint32_t dim = 0;
  uint32_t max_context = 0;
  std::optional<double> top_level_original;  // original_max_position_embeddings outside the object
  bool has_alpha = false;
  ConfigReader* parameters = nullptr;
  bool has_mscales = false;
};

std::vector<float> DefaultInverse(const RopeInput& in) {
  std::vector<float> table(in.dim / 2);
  for (uint32_t i = 0; i < table.size(); ++i) table[i] = 1.0f / RopePeriod(in.theta, in.dim, i);
  return table;
}

double Required(ConfigReader* parameters, const char* key) {
  const std::optional<double> value = parameters->Number(key);
  if (!value || *value <= 0) parameters->FailKey(key, "a positive number");
  return *value;
}

// standardize_rope_params: the top-level key takes precedence, then the object's, then
// max_position_embeddings.
double OriginalContext(const RopeInput& in) {
  const std::optional<double> own = in.parameters->Number("original_max_position_embeddings");
  const double original =
      in.top_level_original.value_or(own.value_or(static_cast<double>(in.max_context)));
  if (original <= 0) {
    in.parameters->FailKey("original_max_position_embeddings", "a positive number");
  }
  return original;
}

RopeSpec Default(const RopeInput& in) { return {in.dim, 1.0f, DefaultInverse(in), {}, 0}; }

// _compute_dynamic_ntk_parameters. Up to max_position_embeddings tokens the base is theta; the
// factor only matters beyond, which no session reaches.
RopeSpec Dynamic(const RopeInput& in) {
  const double alpha = in.has_alpha ? in.parameters->Number("alpha").value_or(0) : 0;
  if (alpha == 0) {
    Required(in.parameters, "factor");
    return Default(in);
  }
  if (!(alpha > 0) || in.dim <= 2) in.parameters->FailKey("alpha", "a positive number");
  in.parameters->MarkRead("factor");
  RopeInput scaled = in;
  scaled.theta *= std::pow(alpha, in.dim / (in.dim - 2.0));
  return Default(scaled);
}

// _compute_linear_scaling_rope_parameters
RopeSpec Linear(const RopeInput& in) {
  RopeSpec rope = Default(in);
  const float factor = static_cast<float>(Required(in.parameters, "factor"));
  for (uint32_t i = 0; i < rope.inv_freq.size(); ++i) {
    rope.inv_freq[i] = LinearRopeFrequency(in.theta, in.dim, i, factor);
  }
  return rope;
}

// _compute_llama3_parameters. torch computes scalar / tensor as reciprocal(tensor) * scalar.
RopeSpec Llama3(const RopeInput& in) {
  const float factor = static_cast<float>(Required(in.parameters, "factor"));
  const double low_factor = Required(in.parameters, "low_freq_factor");
  const double high_factor = Required(in.parameters, "high_freq_factor");
  if (high_factor < low_factor) {
    in.parameters->FailKey("high_freq_factor", "a number not below low_freq_factor");
  }
  const double context = OriginalContext(in);
  const float low_wavelength = static_cast<float>(context / low_factor);
  const float high_wavelength = static_cast<float>(context / high_factor);
  RopeSpec rope = Default(in);
  for (float& f : rope.inv_freq) {
    const float wavelength = (1.0f / f) * static_cast<float>(2 * kPi);
    const float scaled = wavelength > low_wavelength ? f / factor : f;
    // Empty, except for one wavelength, if both factors are equal.
    const bool is_medium = !(wavelength < high_wavelength) && !(wavelength > low_wavelength);
    const float smooth =
        ((1.0f / wavelength) * static_cast<float>(context) - static_cast<float>(low_factor)) /
        static_cast<float>(high_factor - low_factor);
    const float smoothed = (1.0f - smooth) * scaled / factor + smooth * scaled;
    f = is_medium ? smoothed : scaled;
  }
  return rope;
}

// _compute_yarn_parameters (https://arxiv.org/abs/2309.00071)
RopeSpec Yarn(const RopeInput& in) {
  if (in.theta <= 1)
    Fail("%s: rope_theta: yarn needs a value above 1", in.parameters->label().c_str());
  const double context = OriginalContext(in);
  const double factor = in.parameters->Number("factor").value_or(in.max_context / context);
  if (factor <= 0) in.parameters->FailKey("factor", "a positive number");
  // "or": zero counts as absent, as in Python.
  const double fast = in.parameters->Number("beta_fast").value_or(0);
  const double slow = in.parameters->Number("beta_slow").value_or(0);
  const double mscale = in.parameters->Number("mscale").value_or(0);
  const double mscale_all_dim = in.parameters->Number("mscale_all_dim").value_or(0);
  const bool truncate = in.parameters->Bool("truncate", true);
  const double amplitude = in.parameters->Number("attention_factor")
                               .value_or(mscale != 0 && mscale_all_dim != 0
                                             ? YarnRope::Amplitude(factor, mscale) /
                                                   YarnRope::Amplitude(factor, mscale_all_dim)
                                             : YarnRope::Amplitude(factor, 1));

  const YarnRope yarn(
      {in.theta, in.dim, context, factor, fast != 0 ? fast : 32, slow != 0 ? slow : 1, truncate});
  RopeSpec rope{in.dim, static_cast<float>(amplitude), std::vector<float>(in.dim / 2), {}, 0};
  for (uint32_t i = 0; i < rope.inv_freq.size(); ++i) rope.inv_freq[i] = yarn.Frequency(i);
  return rope;
}

// Divides each frequency by its own factor: 1 / (factor * frequency).
std::vector<float> ByFactors(const RopeInput& in, const char* key) {
  const nlohmann::json* list = in.parameters->Find(key);
  const std::string expected = Format("a list of %u positive numbers", in.dim / 2);
  if (list == nullptr || !list->is_array() || list->size() != in.dim / 2) {
    in.parameters->FailKey(key, expected.c_str());
  }
  std::vector<float> table(in.dim / 2);
  for (uint32_t i = 0; i < table.size(); ++i) {
    const nlohmann::json& factor = (*list)[i];
    if (!factor.is_number() || factor.get<double>() <= 0) {
      in.parameters->FailKey(key, expected.c_str());
    }
    table[i] = 1.0f / (factor.get<float>() * RopePeriod(in.theta, in.dim, i));
  }
  return table;
}

// _compute_longrope_parameters (https://arxiv.org/abs/2402.13753). transformers switches to the
// long factors once a sequence passes the original context, even for keys rotated with the short
// ones; here the session decides once, by its context size.
RopeSpec LongRopes(const RopeInput& in) {
  const double context = OriginalContext(in);
  const double factor = in.parameters->Number("factor").value_or(in.max_context / context);
  double amplitude =
      in.parameters->Number("attention_factor")
          .value_or(factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(context)));
  if (in.has_mscales) {
    amplitude = Required(in.parameters, "short_mscale");
    if (Required(in.parameters, "long_mscale") != amplitude) {
      in.parameters->FailKey("long_mscale", "the number of short_mscale");
    }
  }
  return {in.dim, static_cast<float>(amplitude), ByFactors(in, "short_factor"),
          ByFactors(in, "long_factor"), static_cast<uint32_t>(context)};
}

// _compute_proportional_rope_parameters: a part of the frequencies of the whole head, then zeros.
RopeSpec Proportional(const RopeInput& in) {
  const double fraction = in.parameters->Number("partial_rotary_factor").value_or(1.0);
  const double factor = in.parameters->Number("factor").value_or(1.0);
  if (!(fraction >= 0 && fraction <= 1)) {
    in.parameters->FailKey("partial_rotary_factor", "a number from 0 to 1");
  }
  if (!(factor > 0)) in.parameters->FailKey("factor", "a positive number");
  RopeSpec rope = Default(in);
  // Python: fraction * dim // 2.
  const auto rotated = static_cast<size_t>(std::floor(fraction * in.dim / 2));
  for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
    rope.inv_freq[i] = i < rotated ? rope.inv_freq[i] / static_cast<float>(factor) : 0.0f;
  }
  return rope;
}

// As get_llama_4_attn_scale of modeling_ministral3.py.
void ReadTemperature(const RopeInput& in, RopeSpec* rope) {
  constexpr const char* kBeta = "llama_4_scaling_beta";
  const std::optional<double> beta = in.parameters->Number(kBeta);
  if (!beta) in.parameters->FailKey(kBeta, "a number");
  rope->query_temperature = static_cast<float>(*beta);
  rope->query_temperature_step = static_cast<uint32_t>(OriginalContext(in));
}

struct RopeType {
  const char* name;
  RopeSpec (*compute)(const RopeInput&);
};
constexpr RopeType kRopeTypes[] = {{"default", Default}, {"linear", Linear},
                                   {"dynamic", Dynamic}, {"llama3", Llama3},
                                   {"yarn", Yarn},       {"longrope", LongRopes},
                                   {"su", LongRopes},    {"proportional", Proportional}};

// Keys that some known type reads. Ignored for the other types, as in transformers.
constexpr const char* kKnownKeys[] = {"factor",
                                      "low_freq_factor",
                                      "high_freq_factor",
                                      "original_max_position_embeddings",
                                      "beta_fast",
                                      "beta_slow",
                                      "mscale",
                                      "mscale_all_dim",
                                      "truncate",
                                      "attention_factor",
                                      "short_factor",
                                      "long_factor",
                                      "max_position_embeddings"};

void CheckUnreadKeys(const ConfigReader& parameters, const std::string& type, bool has_mrope,
                     const nlohmann::json& object, std::vector<std::string>* warnings) {
  std::vector<std::string> ignored, unknown;
  // Which dimension of a position turns a pair: a token of text has the same position in all.
  constexpr const char* kMrope[] = {"mrope_section", "mrope_interleaved"};
  for (const std::string& key : parameters.Unread()) {
    const bool is_mrope = std::find(std::begin(kMrope), std::end(kMrope), key) != std::end(kMrope);
    if (object[key].is_null() || (has_mrope && is_mrope)) continue;
    const bool is_known =
        std::find(std::begin(kKnownKeys), std::end(kKnownKeys), key) != std::end(kKnownKeys);
    (is_known ? ignored : unknown).push_back(key);
  }
  if (!unknown.empty()) {
    Fail("%s: not supported: %s", parameters.label().c_str(), JoinNames(unknown).c_str());
  }
  if (!ignored.empty()) {
    warnings->push_back(parameters.label() + ": keys that have no effect on type " + type + ": " +
                        JoinNames(ignored));
  }
}

// Returns how many elements of a head are rotated.
uint32_t RotaryDim(ConfigReader* config, ConfigReader* parameters, const RopeQuery& query,
                   bool is_default_type) {
  // Whole heads: Proportional() reads the factor.
  if (parameters->String("rope_type") == "proportional") return query.head_dim;
  if (query.rotary_dim != 0) return query.rotary_dim;
  const std::optional<double> own = parameters->Number("partial_rotary_factor");
  const std::optional<double> outer = config->Number("partial_rotary_factor");
  const std::optional<double> percent =
      query.has_rotary_keys ? config->Number("rotary_pct") : std::nullopt;
  if (query.ignores_partial_rotary) return query.head_dim;
  if (query.part_of != 0) {
    // Python: int(size * fraction).
    if (own && static_cast<int64_t>(query.part_of * *own) != query.head_dim) {
      parameters->FailKey("partial_rotary_factor",
                          Format("%u / %u", query.head_dim, query.part_of).c_str());
    }
    return query.head_dim;
  }
  // transformers then rotates whole heads, in spite of the class's default.
  if (query.partial_rotary != 1.0 && !own && !percent && config->IsNull("partial_rotary_factor")) {
    config->FailKey("partial_rotary_factor", "a number");
  }
  double fraction = own.value_or(percent.value_or(outer.value_or(query.partial_rotary)));
  ConfigReader* where = own ? parameters : config;
  // Types other than the default complete the parameters once more in transformers: the key beside
  // them, or the class's default for it, then takes precedence.
  const bool has_class_key = query.partial_rotary != 1.0 && !query.has_rotary_keys;
  if (!is_default_type && (outer || (has_class_key && !config->IsNull("partial_rotary_factor")))) {
    fraction = outer.value_or(query.partial_rotary);
    where = config;
  }
  const char* key = own || !percent ? "partial_rotary_factor" : "rotary_pct";
  if (!query.has_partial_rotary && fraction != 1.0) {
    where->FailKey(key, "1 (this architecture rotates whole heads)");
  }
  if (!(fraction > 0 && fraction <= 1)) where->FailKey(key, "a number above 0, at most 1");
  const auto dim = static_cast<uint32_t>(query.head_dim * fraction);
  if (dim % 2 != 0 || dim == 0) {
    Fail("%s: %u of the %u elements of a head are rotated, expected an even number",
         config->label().c_str(), dim, query.head_dim);
  }
  return dim;
}

nlohmann::json DefaultParameters(const RopeQuery& query) {
  if (query.default_parameters == nullptr) return nlohmann::json::object();
  return nlohmann::json::parse(query.default_parameters);
}

// Returns the object with the parameters for this layer type; the family's defaults if there is
// none. *key: its name.
nlohmann::json FindParameters(ConfigReader* config, const RopeQuery& query, std::string* key) {
  if (query.is_by_type) {
    const char* type = query.has_window ? "sliding_attention" : "full_attention";
    const nlohmann::json defaults = DefaultParameters(query);
    const nlohmann::json* types = config->Find("rope_parameters");
    if (types == nullptr && !defaults.empty()) types = &defaults;
    *key = std::string("rope_parameters: ") + type;
    if (types == nullptr || !types->is_object() || !types->contains(type) ||
        !(*types)[type].is_object() || !(*types)[type].contains("rope_theta")) {
      config->FailKey("rope_parameters",
                      "an object with a rope_theta for full_attention and sliding_attention");
    }
    return (*types)[type];
  }
  // A non-empty rope_scaling takes precedence over rope_parameters.
  const nlohmann::json* scaling = config->Find("rope_scaling");
  const nlohmann::json* parameters = config->Find("rope_parameters");
  const bool use_scaling = scaling != nullptr && !(scaling->is_object() && scaling->empty());
  *key = use_scaling ? "rope_scaling" : "rope_parameters";
  const nlohmann::json* object = use_scaling ? scaling : parameters;
  if (object == nullptr) return DefaultParameters(query);
  // Families with a separate rope for windowed layers accept the older object only if the newer is
  // absent and it has rope_type, and the newer one only with a key per layer type.
  const bool is_flat = !object->is_object() || (!object->contains("full_attention") &&
                                                !object->contains("sliding_attention"));
  const bool is_older = use_scaling && parameters == nullptr && object->contains("rope_type");
  if (query.is_by_window && is_flat && !is_older && !(object->is_object() && object->empty())) {
    config->FailKey(
        use_scaling ? "rope_scaling" : "rope_parameters",
        use_scaling ? "a rope_type, and no rope_parameters" : "parameters per layer type");
  }
  const char* type = query.has_window ? "sliding_attention" : "full_attention";
  if (query.is_by_window && object->is_object() && object->contains(type)) {
    *key += std::string(": ") + type;
    return (*object)[type];
  }
  // The older keys: scaling applies to full attention only.
  if (query.has_window && use_scaling) return nlohmann::json::object();
  for (const auto& [name, value] : object->items()) {
    if (value.is_object()) {
      Fail("%s: %s: %s: parameters per layer type are not supported", config->label().c_str(),
           key->c_str(), name.c_str());
    }
  }
  return *object;
}

// Adds query.scaling to the config's parameters, as rope_parameters would have it.
void AddScaling(const RopeQuery& query, const std::string& label, nlohmann::json* object) {
  const RopeScaling& scaling = *query.scaling;
  const auto own =
      object->find("rope_type") != object->end() ? object->find("rope_type") : object->find("type");
  if (own != object->end() && own->is_string() && own->get<std::string>() != "default") {
    Fail(
        "%s: has the scaling \"%s\": --rope cannot replace it, edit a copy of config.json and name"
        " it with --config",
        label.c_str(), own->get<std::string>().c_str());
  }
  if (query.is_by_window || query.has_longrope_only) {
    Fail("%s: --rope is not for models with %s", label.c_str(),
         query.is_by_window ? "frequencies by layer type" : "longrope");
  }
  (*object)["rope_type"] = scaling.type;
  (*object)["factor"] = scaling.factor;
  if (scaling.type == "yarn") (*object)["original_max_position_embeddings"] = query.max_context;
}

}  // namespace

RopeSpec ReadRope(ConfigReader* config, const RopeQuery& query,
                  std::vector<std::string>* warnings) {
  std::string key;
  nlohmann::json object = FindParameters(config, query, &key);
  if (query.scaling != nullptr) AddScaling(query, config->label() + ": " + key, &object);
  ConfigReader reader(object, config->label() + ": " + key);

  if (query.head_dim % 2 != 0) {
    Fail("%s: head_dim %u is odd", config->label().c_str(), query.head_dim);
  }
  RopeInput in;
  const std::optional<std::string> old_type = reader.String("type");
  std::string type = reader.String("rope_type").value_or(old_type.value_or("default"));
  in.dim = RotaryDim(config, &reader, query, type == "default");
  in.max_context = query.max_context;
  in.top_level_original = config->Number("original_max_position_embeddings");
  if (query.ignores_outer_original) in.top_level_original = std::nullopt;
  if (!in.top_level_original && query.default_original != 0) {
    in.top_level_original = query.default_original;
  }
  in.parameters = &reader;
  in.has_mscales = query.has_mscales;
  in.has_alpha = query.has_alpha;
  const std::optional<double> base =
      query.has_rotary_keys ? config->Number("rotary_emb_base") : std::nullopt;
  const std::optional<double> global = config->Number("rope_theta");
  const std::optional<double> local =
      query.is_by_window ? config->Number("rope_local_base_freq") : std::nullopt;
  const std::optional<double> outer_theta = query.has_window ? local : base ? base : global;
  const std::optional<double> own_theta = reader.Number("rope_theta");
  in.theta =
      own_theta.value_or(outer_theta.value_or(query.has_window ? query.local_theta : query.theta));
  if (in.theta <= 0) (own_theta ? &reader : config)->FailKey("rope_theta", "a positive number");
  if (query.has_longrope_only && !query.has_mscales && type == "yarn") type = "longrope";
  if (query.has_longrope_only && type != "default" && type != "longrope" && type != "su") {
    reader.FailKey("rope_type", "default or longrope");
  }

  if (query.ignores_partial_rotary && type != "default") reader.FailKey("rope_type", "default");
  if (query.part_of != 0 && (type == "default" || type == "dynamic" || type == "longrope")) {
    reader.FailKey("rope_type", "yarn, linear or llama3");
  }
  for (const RopeType& row : kRopeTypes) {
    if (type != row.name) continue;
    RopeSpec rope = row.compute(in);
    const bool is_plain =
        rope.amplitude == 1.0f && rope.long_inv_freq.empty() && rope.inv_freq == DefaultInverse(in);
    if (is_plain && query.may_scale() && in.theta > 1) rope.theta = static_cast<float>(in.theta);
    if (query.has_query_temperature) ReadTemperature(in, &rope);
    CheckUnreadKeys(reader, type, query.has_mrope, object, warnings);
    for (const float f : rope.inv_freq) {
      if (!std::isfinite(f)) Fail("%s: the frequencies are not finite", reader.label().c_str());
    }
    return rope;
  }
  Fail(
      "%s: type \"%s\" is not supported (supported: default, linear, dynamic, llama3, yarn, "
      "longrope, proportional)",
      reader.label().c_str(), type.c_str());
}

}  // namespace arn::convert
