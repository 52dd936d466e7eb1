#include "tests/golden/pooled_case.h"

#include <algorithm>
#include <cmath>

namespace arn::test {

namespace fs = std::filesystem;

namespace {

// Writes the tensors of a Dense module, whose names start with the module's in the formula.
void WriteDense(const PooledCase& c, const std::string& module, const nlohmann::json& shapes,
                const fs::path& folder) {
  TinyTensors tensors;
  for (const auto& [name, shape_json] : shapes.items()) {
    const auto shape = shape_json.get<std::vector<uint64_t>>();
    uint64_t count = 1;
    for (const uint64_t n : shape) count *= n;
    const std::vector<float> values = TinyValues(
        module + "." + name, count, c.golden.checkpoint.base_seed, c.golden.checkpoint.amplitude);
    tensors[name] = {"F32", shape, EncodeFloats(values, "F32")};
  }
  const std::vector<uint8_t> bytes = EncodeSafetensors(tensors);
  WriteFile(folder / module / "model.safetensors", bytes.data(), bytes.size());
}

}  // namespace

PooledCase LoadPooled(const std::string& name) {
  PooledCase out;
  out.json = nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/" + name + ".json")));
  out.golden.name = name;
  out.golden.config = out.golden.old_config = out.json.at("config");
  out.json.at("tensors").get_to(out.golden.tensors);
  out.golden.checkpoint.base_seed = out.json.at("base_seed");
  out.golden.checkpoint.amplitude = out.json.at("amplitude");
  out.json.at("logits").get_to(out.results);
  return out;
}

bool ConvertPooled(const PooledCase& c, const fs::path& folder, const fs::path& bundle,
                   const std::vector<std::string>& options) {
  for (const auto& [name, content] : c.json.at("files").items()) {
    fs::create_directories((folder / name).parent_path());
    WriteFile(folder / name, content.dump());
  }
  if (c.json.contains("dense_tensors")) {
    for (const auto& [module, shapes] : c.json.at("dense_tensors").items()) {
      WriteDense(c, module, shapes, folder);
    }
  }
  if (c.json.contains("tokenizer")) {
    fs::create_directories(folder);
    fs::copy_file(SourcePath(c.json.at("tokenizer")), folder / "tokenizer.json",
                  fs::copy_options::overwrite_existing);
  }
  return ConvertGolden(c.golden, ConfigStyle::kTransformers5, folder, bundle, options);
}

EmbedderPtr NewEmbedder(const arn_model* model, const arn_embed_options& options) {
  char error[512] = "";
  arn_embedder* embedder = nullptr;
  EXPECT_EQ(ARN_OK,
            arn_embedder_create(model, &options, nullptr, 0, error, sizeof error, &embedder))
      << error;
  return EmbedderPtr(embedder);
}

uint32_t EmbedWidth(const arn_model* model) {
  arn_embed_info info = ARN_EMBED_INFO_INIT;
  EXPECT_EQ(ARN_OK, arn_embed_get_info(model, &info));
  return info.width;
}

std::vector<float> EmbedCase(const PooledCase& c, arn_embedder* embedder) {
  std::vector<int32_t> ids;
  std::vector<uint32_t> lengths, first_lengths;
  for (const nlohmann::json& n : c.json.at("n_first_type")) {
    first_lengths.push_back(n.is_null() ? UINT32_MAX : n.get<uint32_t>());
  }
  for (const nlohmann::json& item : c.json.at("texts")) {
    const auto text = item.get<std::vector<int32_t>>();
    ids.insert(ids.end(), text.begin(), text.end());
    lengths.push_back(static_cast<uint32_t>(text.size()));
  }
  std::vector<float> out(lengths.size() * c.results[0].size());
  EXPECT_EQ(ARN_OK, arn_embed_ids(embedder, ids.data(), ids.size(), lengths.data(),
                                  first_lengths.data(), lengths.size(), out.data(), out.size()))
      << arn_embedder_last_error(embedder);
  return out;
}

void ExpectResults(const PooledCase& c, const std::vector<float>& found, double tolerance) {
  const size_t width = c.results[0].size();
  ASSERT_EQ(c.results.size() * width, found.size());
  for (size_t i = 0; i < c.results.size(); ++i) {
    double largest = 0, error = 0;
    for (size_t w = 0; w < width; ++w) {
      const double expected = c.results[i][w];
      largest = std::max(largest, std::abs(expected));
      error = std::max(error, std::abs(expected - static_cast<double>(found[i * width + w])));
    }
    EXPECT_LE(error, tolerance * largest) << "text " << i;
  }
}

}  // namespace arn::test
