#include "tools/serve/text_scorer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "tools/arenite/error.h"
#include "tools/cli/format.h"

namespace arn::serve {
namespace {

using cli::Format;

// As many as OpenAI's API takes.
constexpr size_t kMaxTexts = 2048;

tool::EmbedderArguments ArgumentsOf(uint32_t n_threads) {
  tool::EmbedderArguments arguments;
  arguments.threads = n_threads;
  return arguments;
}

// RFC 4648, with padding.
std::string Base64(const std::string& bytes) {
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < n ? static_cast<unsigned char>(bytes[at + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) out += i <= n ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

// f32 [size], little-endian.
std::string BytesOf(const float* values, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], sizeof bits);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 255);
  }
  return bytes;
}

void Normalise(float* values, size_t size) {
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += double{values[i]} * double{values[i]};
  const double scale = sum > 0 ? 1 / std::sqrt(sum) : 0;
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(double{values[i]} * scale);
}

std::string TextAt(const Json& value, const std::string& path) {
  if (!value.is_string()) throw BadField(path, "is " + KindOf(value) + ", expected a string");
  return value.get<std::string>();
}

std::vector<std::string> TextsOf(const Json& value, const std::string& name) {
  if (!value.is_array()) return {TextAt(value, name)};
  if (value.empty() || value.size() > kMaxTexts) {
    throw BadField(name, Format("has %zu texts, expected 1 to %zu", value.size(), kMaxTexts));
  }
  std::vector<std::string> texts;
  for (const Json& text : value) {
    texts.push_back(TextAt(text, Format("%s[%zu]", name.c_str(), texts.size())));
  }
  return texts;
}

// True for token ids instead of texts: [1, 2] or [[1, 2], [3]].
bool IsIds(const Json& value) {
  if (!value.is_array() || value.empty()) return false;
  return value[0].is_number() || value[0].is_array();
}

struct IdLimits {
  uint32_t vocab, max_tokens;
};

std::vector<int32_t> IdsAt(const Json& value, const std::string& path, const IdLimits& limits) {
  if (!value.is_array()) throw BadField(path, "is " + KindOf(value) + ", expected token ids");
  if (value.empty() || value.size() > limits.max_tokens) {
    throw BadField(path,
                   Format("has %zu token ids, expected 1 to %u", value.size(), limits.max_tokens));
  }
  std::vector<int32_t> ids;
  for (const Json& id : value) {
    if (!id.is_number_integer() || id < 0 || id >= limits.vocab) {
      throw BadField(Format("%s[%zu]", path.c_str(), ids.size()),
                     "is " + id.dump() + Format(", expected a token id below %u", limits.vocab));
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

std::vector<std::vector<int32_t>> IdsOf(const Json& value, const std::string& name,
                                        const IdLimits& limits) {
  if (!value[0].is_array()) return {IdsAt(value, name, limits)};
  if (value.size() > kMaxTexts) {
    throw BadField(name, Format("has %zu texts, expected 1 to %zu", value.size(), kMaxTexts));
  }
  std::vector<std::vector<int32_t>> texts;
  for (const Json& ids : value) {
    texts.push_back(IdsAt(ids, Format("%s[%zu]", name.c_str(), texts.size()), limits));
  }
  return texts;
}

Json UsageOf(uint64_t n_tokens) {
  return {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}};
}

}  // namespace

TextScorer::TextScorer(const tool::Model& model, std::string name, uint32_t n_threads,
                       size_t max_text_bytes)
    : model_(model),
      name_(std::move(name)),
      embedder_(model, ArgumentsOf(n_threads), 0, {}, max_text_bytes) {
  arn_embed_get_info(model.get(), &info_);
}

void TextScorer::CheckModel(Fields* fields) const {
  const auto name = fields->Text("model");
  if (!name || *name == name_) return;
  throw ApiError(404, "invalid_request_error",
                 "there is no model \"" + *name + "\" for this: the server has \"" + name_ + "\"",
                 "model", "model_not_found");
}

// Returns null for the checkpoint's default.
const char* TextScorer::PromptOf(Fields* fields) const {
  const auto wanted = fields->Text("prompt_name");
  if (!wanted) return nullptr;
  const char *name = nullptr, *text = nullptr;
  std::string names;
  for (uint32_t i = 0; arn_embed_prompt(model_.get(), i, &name, &text) == ARN_OK; ++i) {
    if (*wanted == name) return text;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw BadField("prompt_name", "is \"" + *wanted + "\", but the model has " +
                                    (names.empty() ? "no prompts" : names));
}

Json TextScorer::Embed(const Json& body) {
  Fields fields(body, "");
  CheckModel(&fields);
  const Json& input = fields.Need("input");
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::string> texts;
  if (IsIds(input)) {
    ids = IdsOf(input, "input", {model_.info().vocab, embedder_.plan().max_tokens});
  } else {
    texts = TextsOf(input, "input");
  }
  const std::string format = fields.Text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    throw BadField("encoding_format", "is \"" + format + "\", expected float or base64");
  }
  const uint32_t width = embedder_.width();
  const size_t kept = fields.Whole("dimensions", 1, width).value_or(width);
  const char* prompt = PromptOf(&fields);
  if (prompt != nullptr && !ids.empty()) {
    throw BadField("prompt_name", "needs texts: token ids have their prompt already");
  }
  fields.Ignore({"user"});
  fields.End();

  std::vector<float> vectors;
  uint64_t n_tokens = 0;
  {
    const std::lock_guard<std::mutex> lock(computing_);
    const auto prefix = prompt == nullptr ? std::nullopt : std::optional<std::string>(prompt);
    vectors = ids.empty() ? embedder_.Embed(prefix, texts) : embedder_.EmbedIds(ids);
    n_tokens = embedder_.Counts().n_tokens;
  }
  Json data = Json::array();
  for (size_t i = 0; i < vectors.size() / width; ++i) {
    float* vector = vectors.data() + i * width;
    if (kept < width && info_.is_normalized != 0) Normalise(vector, kept);
    Json embedding;
    if (format == "base64") {
      embedding = Base64(BytesOf(vector, kept));
    } else {
      embedding = std::vector<float>(vector, vector + kept);
    }
    data.push_back({{"object", "embedding"}, {"index", i}, {"embedding", std::move(embedding)}});
  }
  return {{"object", "list"},
          {"data", std::move(data)},
          {"model", name_},
          {"usage", UsageOf(n_tokens)}};
}

Json TextScorer::Rerank(const Json& body) {
  Fields fields(body, "");
  CheckModel(&fields);
  const std::string query = fields.NeedText("query");
  const std::vector<std::string> documents = TextsOf(fields.Need("documents"), "documents");
  const size_t top = fields.Whole("top_n", 1, kMaxTexts).value_or(documents.size());
  const bool has_text = fields.Bool("return_documents").value_or(false);
  const std::string instruction = fields.Text("instruction").value_or("");
  fields.Ignore({"user"});
  fields.End();

  std::vector<float> scores;
  uint64_t n_tokens = 0;
  {
    const std::lock_guard<std::mutex> lock(computing_);
    scores = embedder_.Rerank(instruction, query, documents);
    n_tokens = embedder_.Counts().n_tokens;
  }
  std::vector<size_t> order(documents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min(top, order.size()));
  Json results = Json::array();
  for (const size_t i : order) {
    Json result = {{"index", i}, {"relevance_score", scores[i]}};
    if (has_text) result["document"] = {{"text", documents[i]}};
    results.push_back(std::move(result));
  }
  return {{"model", name_},
          {"object", "list"},
          {"results", std::move(results)},
          {"usage", UsageOf(n_tokens)}};
}

}  // namespace arn::serve
