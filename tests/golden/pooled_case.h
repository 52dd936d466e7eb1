// Loads the cases of data/pooled and data/pooled_text, described in make_pooled_goldens.py.
#pragma once

#include <arenite/arenite.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"

namespace arn::test {

struct PooledCase {
  GoldenCase golden;    // its config and tensors
  nlohmann::json json;  // the whole file
  std::vector<std::vector<double>> results;
};

// "pooled/bert_mean" of data/pooled/bert_mean.json.
PooledCase LoadPooled(const std::string& name);

// Writes the checkpoint, its tokenizer and the files beside it to `folder`, and converts it.
// Returns false after a test failure.
bool ConvertPooled(const PooledCase& c, const std::filesystem::path& folder,
                   const std::filesystem::path& bundle, const std::vector<std::string>& options);

struct DestroyEmbedder {
  void operator()(arn_embedder* embedder) const { arn_embedder_destroy(embedder); }
};
using EmbedderPtr = std::unique_ptr<arn_embedder, DestroyEmbedder>;
// Returns null and fails the test with the library's message on error.
EmbedderPtr NewEmbedder(const arn_model* model, const arn_embed_options& options);
uint32_t EmbedWidth(const arn_model* model);
// Results of all texts of a case in one call.
std::vector<float> EmbedCase(const PooledCase& c, arn_embedder* embedder);

// Compares row i of `found` with the case's result i, relative to the result's largest element.
void ExpectResults(const PooledCase& c, const std::vector<float>& found, double tolerance);

}  // namespace arn::test
