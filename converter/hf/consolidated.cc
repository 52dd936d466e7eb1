#include "converter/hf/consolidated.h"

#include <algorithm>
#include <cinttypes>
#include <optional>

#include "converter/base/error.h"
#include "converter/hf/config_reader.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMostParts = 100;

enum class JoinBy : uint8_t { kNone, kRows, kColumns, kQueryRows, kKeyRows, kEmbedding };

struct ConsolidatedName {
  const char* stored;
  const char* name;
  JoinBy join;
};

constexpr ConsolidatedName kModelNames[] = {
    {"tok_embeddings.weight", "model.embed_tokens.weight", JoinBy::kEmbedding},
    {"norm.weight", "model.norm.weight", JoinBy::kNone},
    {"output.weight", "lm_head.weight", JoinBy::kRows},
};
constexpr ConsolidatedName kLayerNames[] = {
    {"attention.wq.weight", "self_attn.q_proj.weight", JoinBy::kQueryRows},
    {"attention.wk.weight", "self_attn.k_proj.weight", JoinBy::kKeyRows},
    {"attention.wv.weight", "self_attn.v_proj.weight", JoinBy::kRows},
    {"attention.wo.weight", "self_attn.o_proj.weight", JoinBy::kColumns},
    {"feed_forward.w1.weight", "mlp.gate_proj.weight", JoinBy::kRows},
    {"feed_forward.w2.weight", "mlp.down_proj.weight", JoinBy::kColumns},
    {"feed_forward.w3.weight", "mlp.up_proj.weight", JoinBy::kRows},
    {"attention_norm.weight", "input_layernorm.weight", JoinBy::kNone},
    {"ffn_norm.weight", "post_attention_layernorm.weight", JoinBy::kNone},
};

fs::path ParamsPath(const fs::path& folder) { return folder / "params.json"; }

// Some files have the parameters within an object.
nlohmann::json LoadParams(const fs::path& folder) {
  const nlohmann::json params = LoadJson(ParamsPath(folder));
  return params.is_object() && params.contains("model") ? params["model"] : params;
}

struct HeadCounts {
  uint32_t layers = 0, heads = 0, kv_heads = 0;
};

HeadCounts ReadHeads(ConfigReader* params) {
  HeadCounts counts;
  counts.layers = params->RequiredCount("n_layers");
  counts.heads = params->RequiredCount("n_heads");
  counts.kv_heads = params->Count("n_kv_heads").value_or(counts.heads);
  return counts;
}

const SourceTensor* FindIn(const TorchFile& file, const std::string& name) {
  const auto at = std::find_if(file.tensors().begin(), file.tensors().end(),
                               [&](const SourceTensor& tensor) { return tensor.name == name; });
  return at == file.tensors().end() ? nullptr : &*at;
}

}  // namespace

std::set<std::string> ConsolidatedFiles(const fs::path& folder) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < kMostParts; ++i) {
    const std::string name = Format("consolidated.%02u.pth", i);
    if (!fs::exists(folder / name)) break;
    names.insert(name);
  }
  return names;
}

ConsolidatedFile::ConsolidatedFile(const fs::path& folder) {
  const nlohmann::json json = LoadParams(folder);
  ConfigReader params(json, ParamsPath(folder).string());
  const HeadCounts counts = ReadHeads(&params);
  for (const std::string& name : ConsolidatedFiles(folder)) {
    parts_.push_back(std::make_unique<TorchFile>(folder / name));
  }
  const uint32_t dim = params.RequiredCount("dim");
  std::set<std::string> known = {"rope.freqs"};
  const auto add = [&](const ConsolidatedName& row, const std::string& stored_prefix,
                       const std::string& prefix) {
    const std::string stored = stored_prefix + row.stored;
    known.insert(stored);
    bool by_columns = row.join == JoinBy::kColumns;
    if (row.join == JoinBy::kEmbedding) {
      // By rows from Llama 3 on.
      const SourceTensor* piece = FindIn(*parts_[0], stored);
      by_columns = piece != nullptr && piece->shape.size() == 2 && piece->shape[1] != dim;
    }
    const uint64_t heads = row.join == JoinBy::kQueryRows ? counts.heads
                           : row.join == JoinBy::kKeyRows ? counts.kv_heads
                                                          : 0;
    Add(prefix + row.name, stored, by_columns, heads);
    if (row.join == JoinBy::kNone) joined_.back().pieces.resize(1);
  };
  for (const ConsolidatedName& row : kModelNames) add(row, "", "");
  for (uint32_t i = 0; i < counts.layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    for (const ConsolidatedName& row : kLayerNames) add(row, layer, "model." + layer);
  }
  for (const auto& part : parts_) {
    for (const SourceTensor& tensor : part->tensors()) {
      if (known.count(tensor.name) != 0) continue;
      Fail("%s: tensor %s is none of a Llama model of %u layers", part->path().c_str(),
           tensor.name.c_str(), counts.layers);
    }
  }
}

void ConsolidatedFile::Add(const std::string& name, const std::string& stored, bool by_columns,
                           uint64_t heads) {
  Joined joined;
  for (const auto& part : parts_) {
    const SourceTensor* piece = FindIn(*part, stored);
    if (piece == nullptr) Fail("%s: lacks tensor %s", part->path().c_str(), stored.c_str());
    const SourceTensor& first = *(joined.pieces.empty() ? piece : joined.pieces[0]);
    if (piece->shape != first.shape || piece->dtype != first.dtype || piece->shape.empty() ||
        piece->elements() == 0 || piece->bytes % piece->elements() != 0 || piece->bytes == 0) {
      Fail("%s: tensor %s: expected %s %s of elements one after another, as in %s, found %s %s",
           part->path().c_str(), stored.c_str(), first.dtype.c_str(),
           ShapeText(first.shape).c_str(), parts_[0]->path().c_str(), piece->dtype.c_str(),
           ShapeText(piece->shape).c_str());
    }
    joined.pieces.push_back(piece);
  }
  const uint64_t n = joined.pieces.size();
  SourceTensor tensor = *joined.pieces[0];
  joined.piece_rows = tensor.shape[0];
  joined.piece_row_bytes = tensor.bytes / joined.piece_rows;
  joined.row_bytes = joined.piece_row_bytes * (by_columns ? n : 1);
  const bool is_vector = tensor.shape.size() == 1;
  if (!is_vector) tensor.shape[by_columns ? 1 : 0] *= n;
  if (heads != 0) {
    if (tensor.shape[0] % (2 * heads) != 0) {
      Fail("%s: tensor %s: its %" PRIu64 " rows are not those of %" PRIu64 " heads", path().c_str(),
           stored.c_str(), tensor.shape[0], heads);
    }
    joined.head_rows = tensor.shape[0] / heads;
  }
  tensor.name = name;
  tensor.bytes *= is_vector ? 1 : n;
  tensor.offset = tensors_.empty() ? 0 : tensors_.back().offset + tensors_.back().bytes;
  tensors_.push_back(std::move(tensor));
  joined_.push_back(std::move(joined));
}

void ConsolidatedFile::Read(uint64_t offset, void* out, size_t bytes) const {
  const auto after = std::upper_bound(
      tensors_.begin(), tensors_.end(), offset,
      [](uint64_t value, const SourceTensor& tensor) { return value < tensor.offset; });
  const auto index = static_cast<size_t>(after - tensors_.begin()) - 1;
  const Joined& joined = joined_[index];
  uint64_t at = offset - tensors_[index].offset;
  for (char* to = static_cast<char*>(out); bytes > 0;) {
    uint64_t row = at / joined.row_bytes;
    const uint64_t byte = at % joined.row_bytes;
    if (joined.head_rows != 0) {
      const uint64_t in_head = row % joined.head_rows, half = joined.head_rows / 2;
      row += in_head % half * 2 + in_head / half - in_head;
    }
    const uint64_t part = row / joined.piece_rows + byte / joined.piece_row_bytes;
    const uint64_t in_row = byte % joined.piece_row_bytes;
    const uint64_t begin = row % joined.piece_rows * joined.piece_row_bytes + in_row;
    const bool is_whole = joined.head_rows == 0 && joined.row_bytes == joined.piece_row_bytes;
    const uint64_t run =
        is_whole ? joined.pieces[part]->bytes - begin : joined.piece_row_bytes - in_row;
    const size_t n = static_cast<size_t>(std::min<uint64_t>(run, bytes));
    parts_[part]->Read(joined.pieces[part]->offset + begin, to, n);
    to += n;
    at += n;
    bytes -= n;
  }
}

nlohmann::json ConsolidatedConfig(const fs::path& folder, std::vector<std::string>* warnings) {
  const nlohmann::json json = LoadParams(folder);
  ConfigReader params(json, ParamsPath(folder).string());
  const HeadCounts counts = ReadHeads(&params);
  const ConsolidatedFile file(folder);
  const auto rows_of = [&](const std::string& name) {
    for (const SourceTensor& tensor : file.tensors()) {
      if (tensor.name == name) return tensor.shape[0];
    }
    return uint64_t{0};
  };
  const double base = params.Number("rope_theta").value_or(10000.0);
  if (params.Bool("use_scaled_rope", false)) {
    params.FailKey("use_scaled_rope",
                   "false: params.json does not say the scaling's factor, which differs between "
                   "models; give the model's config.json of Hugging Face with --config");
  }
  const double epsilon = params.Number("norm_eps").value_or(1e-5);
  // Takes from the tensors' sizes what these keys say.
  for (const char* key : {"dim", "vocab_size", "multiple_of", "ffn_dim_multiplier"}) {
    params.MarkRead(key);
  }
  uint32_t context = base > 10000.0 && base < 500000.0 ? 16384 : base > 10000.0 ? 8192 : 2048;
  if (const std::optional<uint32_t> stored = params.Count("max_seq_len")) {
    context = *stored;
  } else {
    warnings->push_back(
        Format("%s: does not say the context the model was trained for: %u assumed "
               "(--config with the model's config.json of Hugging Face says it)",
               params.label().c_str(), context));
  }
  if (const std::vector<std::string> unknown = params.Unread(); !unknown.empty()) {
    Fail("%s: unknown keys: %s", params.label().c_str(), JoinNames(unknown, 20).c_str());
  }
  const uint64_t vocab = rows_of("model.embed_tokens.weight");
  const bool has_large_vocab = vocab > 128000;  // from Llama 3 on
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", vocab},
          {"hidden_size", params.RequiredCount("dim")},
          {"intermediate_size", rows_of("model.layers.0.mlp.gate_proj.weight")},
          {"num_hidden_layers", counts.layers},
          {"num_attention_heads", counts.heads},
          {"num_key_value_heads", counts.kv_heads},
          {"rms_norm_eps", epsilon},
          {"rope_theta", base},
          {"max_position_embeddings", context},
          {"tie_word_embeddings", false},
          {"bos_token_id", has_large_vocab ? 128000 : 1},
          {"eos_token_id", has_large_vocab ? 128001 : 2}};
}

}  // namespace arn::convert
