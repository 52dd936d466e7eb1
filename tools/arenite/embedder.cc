#include "tools/arenite/embedder.h"

#include <algorithm>

#include "CLI/CLI.hpp"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"

namespace arn::tool {
namespace {

constexpr size_t kErrorBytes = 1024;

std::vector<arn_text> TextsOf(const std::vector<std::string>& texts) {
  std::vector<arn_text> views;
  for (const std::string& text : texts) views.push_back({text.data(), text.size()});
  return views;
}

}  // namespace

void AddEmbedderOptions(CLI::App* app, EmbedderArguments* arguments) {
  app->add_option("--backend", arguments->backend,
                  "Backend that computes: cpu, vulkan or reference")
      ->transform(CLI::IsMember({"cpu", "vulkan", "reference"}, CLI::ignore_case))
      ->capture_default_str();
  app->add_option("--max-tokens", arguments->max_tokens,
                  "Longest text in tokens: what is longer is cut [the model's]")
      ->check(CLI::Range(1u, 1u << 20));
  app->add_option("--batch-tokens", arguments->batch_tokens,
                  "Tokens of the texts that run together [--max-tokens, at least 512]")
      ->check(CLI::Range(1u, 1u << 20));
  app->add_option("--threads", arguments->threads, "Number of threads [the performance CPUs]")
      ->check(CLI::Range(1u, 256u));
}

std::vector<std::string> ReadLines(const std::string& path) {
  const std::string text = ReadFile(path);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    at = end + 1;
  }
  if (lines.empty()) throw Error(path + ": has no lines");
  return lines;
}

Embedder::Embedder(const Model& model, const EmbedderArguments& arguments, uint32_t width,
                   const std::vector<std::string>& texts, size_t more_bytes) {
  arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
  options.backend = arguments.backend == "cpu"      ? ARN_BACKEND_CPU
                    : arguments.backend == "vulkan" ? ARN_BACKEND_VULKAN
                                                    : ARN_BACKEND_REFERENCE;
  options.max_tokens = arguments.max_tokens;
  options.batch_tokens = arguments.batch_tokens;
  options.n_threads = arguments.threads;
  options.width = width;
  size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  options.text_bytes = longest + more_bytes + 1;
  char error[kErrorBytes] = "";
  arn_status status = arn_embed_plan(model.get(), &options, error, sizeof error, &plan_);
  arn_embedder* embedder = nullptr;
  if (status == ARN_OK) {
    status = arn_embedder_create(model.get(), &options, nullptr, 0, error, sizeof error, &embedder);
  }
  if (status != ARN_OK) {
    throw Error(model.path() + ": " + (error[0] != '\0' ? error : arn_status_name(status)));
  }
  embedder_.reset(embedder);
}

void Embedder::Check(arn_status status) const {
  if (status == ARN_OK) return;
  const char* reason = arn_embedder_last_error(embedder_.get());
  throw Error(reason[0] != '\0' ? reason : arn_status_name(status));
}

std::vector<float> Embedder::Embed(const std::optional<std::string>& prompt,
                                   const std::vector<std::string>& texts) {
  std::vector<float> out(texts.size() * width());
  const std::vector<arn_text> views = TextsOf(texts);
  Check(arn_embed(embedder_.get(), prompt ? prompt->c_str() : nullptr, views.data(), views.size(),
                  out.data(), out.size()));
  return out;
}

std::vector<float> Embedder::EmbedIds(const std::vector<std::vector<int32_t>>& texts) {
  std::vector<float> out(texts.size() * width());
  std::vector<int32_t> ids;
  std::vector<uint32_t> lengths;
  for (const std::vector<int32_t>& text : texts) {
    ids.insert(ids.end(), text.begin(), text.end());
    lengths.push_back(static_cast<uint32_t>(text.size()));
  }
  Check(arn_embed_ids(embedder_.get(), ids.data(), ids.size(), lengths.data(), nullptr,
                      lengths.size(), out.data(), out.size()));
  return out;
}

std::vector<float> Embedder::Rerank(const std::string& instruction, const std::string& query,
                                    const std::vector<std::string>& documents) {
  std::vector<float> out(documents.size() * width());
  const std::vector<arn_text> views = TextsOf(documents);
  Check(arn_rerank(embedder_.get(), instruction.c_str(), {query.data(), query.size()}, views.data(),
                   views.size(), out.data(), out.size()));
  return out;
}

arn_embed_counts Embedder::Counts() const {
  arn_embed_counts counts = ARN_EMBED_COUNTS_INIT;
  arn_embedder_get_counts(embedder_.get(), &counts);
  return counts;
}

void Embedder::WriteCounts(JsonWriter* json) const {
  const arn_embed_counts counts = Counts();
  json->Key("n_tokens").Uint(counts.n_tokens);
  json->Key("n_cut_texts").Uint(counts.n_cut_texts);
  json->Key("tokens_per_s").Number(PerSecond(counts.n_tokens, counts.ns));
  json->Key("memory").BeginObject();
  json->Key("weights_bytes").Uint(plan_.weights_bytes);
  json->Key("constants_bytes").Uint(plan_.constants_bytes);
  json->Key("activations_bytes").Uint(plan_.activations_bytes);
  json->Key("io_bytes").Uint(plan_.io_bytes);
  json->Key("total_bytes").Uint(plan_.total_bytes);
  json->EndObject();
}

}  // namespace arn::tool
