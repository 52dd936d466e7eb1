// Writes golden cases, without what GGUF files cannot express, as folder and file. Both must give
// the same bundle.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "converter/gguf/gguf_model.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/gguf/gguf_fixture.h"
#include "tests/unit/converter/gguf/gguf_key_outcomes.h"

namespace arn::convert {

using nlohmann::json;
using test::GgufWriter;
using test::TinyTensor;
using test::TinyTensors;
using ::testing::HasSubstr;

using Renames = std::vector<std::pair<std::string, std::string>>;

class GgufFamilyTest : public GgufTest {
 protected:
  // Loads the config and the tensors of a golden case.
  void Load(const std::string& name) {
    const std::vector<uint8_t> file =
        test::ReadFile(std::filesystem::path(ARN_GOLDEN_DIR) / (name + ".json"));
    const json golden = json::parse(file.begin(), file.end());
    config_ = golden.at("config");
    tensors_.clear();
    for (const auto& [tensor, shape] : golden.at("tensors").items()) {
      Add(tensor, shape.get<std::vector<uint64_t>>());
    }
  }
  void Add(const std::string& name, const std::vector<uint64_t>& shape) {
    uint64_t count = 1;
    for (const uint64_t n : shape) count *= n;
    tensors_[name] = {"F32", shape,
                      test::EncodeFloats(test::TinyValues(name, count, 1, 0.3f), "F32")};
  }

  // Writes the metadata that every architecture has, and `sizes` as integers.
  GgufWriter Sizes(const std::string& arch, const json& sizes) {
    GgufWriter writer;
    writer.String("general.architecture", arch);
    for (const auto& [key, value] : sizes.items()) writer.Uint(arch + "." + key, value);
    writer.Float(arch + ".attention.layer_norm_rms_epsilon",
                 config_.value("rms_norm_eps", config_.value("layer_norm_epsilon", 1e-5f)));
    writer.Uint("tokenizer.ggml.bos_token_id", 1);
    writer.Uint("tokenizer.ggml.eos_token_id", 2);
    writer.Uint("tokenizer.ggml.padding_token_id", 0);
    return writer;
  }

  // Adds the remaining tensors under GGUF names: each entry of the list in turn replaces its first
  // occurrence in a name.
  void AddRest(const Renames& renames, GgufWriter* writer) {
    for (const auto& [stored, tensor] : tensors_) {
      std::string name = stored;
      for (const auto& [from, to] : renames) name = Replaced(name, from, to);
      writer->Tensor(name, test::kGgufF32, tensor.shape, tensor.bytes);
    }
  }
  void WriteFolder() {
    std::filesystem::create_directories(folder_ / "out");
    const std::filesystem::path model = folder_ / "model";
    std::filesystem::remove_all(model);
    std::filesystem::create_directories(model);
    test::WriteFile(model / "config.json", config_.dump());
    test::WriteFile(model / "generation_config.json",
                    json({{"bos_token_id", 1}, {"eos_token_id", 2}, {"pad_token_id", 0}}).dump());
    const std::vector<uint8_t> file = test::EncodeSafetensors(tensors_);
    test::WriteFile(model / "model.safetensors", file.data(), file.size());
  }
  // Transposes [n, inputs, outputs] to [n, outputs, inputs] for the outputs first, first + step,
  // ...
  static TinyTensor Turned(const TinyTensor& tensor, size_t first, size_t step, size_t count) {
    const size_t n = tensor.shape[0], inputs = tensor.shape[1], outputs = tensor.shape[2];
    const std::vector<float> values = Floats(tensor);
    std::vector<float> turned;
    for (size_t e = 0; e < n; ++e) {
      for (size_t o = 0; o < count; ++o) {
        for (size_t i = 0; i < inputs; ++i) {
          turned.push_back(values[(e * inputs + i) * outputs + first + o * step]);
        }
      }
    }
    return {"F32", {n, count, inputs}, test::EncodeFloats(turned, "F32")};
  }
  void Take(const std::string& name, TinyTensor* tensor) {
    *tensor = tensors_.at(name);
    tensors_.erase(name);
  }
  static void Put(const std::string& name, const TinyTensor& tensor, GgufWriter* writer) {
    writer->Tensor(name, test::kGgufF32, tensor.shape, tensor.bytes);
  }
  // Writes a layer's stacked experts from one [gate; up] tensor, interleaved or concatenated.
  void PutExperts(const std::string& from, const std::string& to, bool in_turn,
                  GgufWriter* writer) {
    TinyTensor both, down;
    Take(from + "gate_up_proj", &both);
    Take(from + "down_proj", &down);
    const size_t ffn = both.shape[2] / 2, step = in_turn ? 2 : 1;
    Put(to + "ffn_gate_exps.weight", Turned(both, 0, step, ffn), writer);
    Put(to + "ffn_up_exps.weight", Turned(both, in_turn ? 1 : ffn, step, ffn), writer);
    Put(to + "ffn_down_exps.weight", Turned(down, 0, 1, down.shape[2]), writer);
  }
  // `assumption` is part of the expected warning; empty: none.
  void ExpectSame(const GgufWriter& writer, const char* assumption) {
    WriteGguf(writer);
    for (const DType dtype : {DType::kF32, DType::kInt4}) {
      Run(Options(dtype));
      Run(GgufOptions(dtype));
      if (*assumption != '\0') {
        EXPECT_THAT(warnings_, ::testing::Contains(HasSubstr(assumption)));
      } else {
        EXPECT_THAT(warnings_,
                    ::testing::Not(::testing::Contains(HasSubstr("do not store all settings"))));
      }
      EXPECT_TRUE(test::ReadFile(folder_ / "out/model.arn") ==
                  test::ReadFile(folder_ / "out/gguf.arn"))
          << DTypeName(dtype);
    }
    ExpectKeysAreChecked(writer);
  }
  // Leaves each key out in turn, and gives it values of other types and sizes: what becomes of the
  // file is in a table.
  void ExpectKeysAreChecked(const GgufWriter& writer) {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::filesystem::path path = folder_ / "keys.gguf";
    GgufKeyOutcomes outcomes(std::string(test->test_suite_name()) + "." + test->name() + " " +
                                 std::to_string(++n_files_),
                             folder_ / "model.gguf");
    const std::vector<std::pair<std::string, std::vector<uint8_t>>> factors = RopeFactors();
    for (const std::string& key : writer.keys()) {
      GgufWriter changed = writer;
      const auto add = [&](const char* value, const auto& change) {
        changed.Drop(key);
        change(&changed);
        // The values of tensors, which are zeros here, do not matter.
        uint64_t bytes = 0;
        const std::vector<uint8_t> head = changed.EncodeHead(&bytes);
        test::WriteFile(path, head.data(), head.size());
        std::filesystem::resize_file(path, bytes);
        if (!factors.empty()) PutRopeFactors(path, factors);
        outcomes.Add(value, path);
      };
      add("none", [&](GgufWriter*) {});
      add("0", [&](GgufWriter* w) { w->Uint(key, 0); });
      add("3", [&](GgufWriter* w) { w->Uint(key, 3); });
      add("4294967295", [&](GgufWriter* w) { w->Uint(key, UINT32_MAX); });
      add("0.3", [&](GgufWriter* w) { w->Float(key, 0.3f); });
      add("false", [&](GgufWriter* w) { w->Bool(key, false); });
      add("true", [&](GgufWriter* w) { w->Bool(key, true); });
      add("\"x\"", [&](GgufWriter* w) { w->String(key, "x"); });
      add("[1]", [&](GgufWriter* w) { w->Ints(key, {1}); });
      std::vector<int32_t> counts(64, 1);
      for (const int32_t first : {0, -1, 2}) {
        counts[0] = first;
        add(("[" + std::to_string(first) + " 1 1 ...]").c_str(),
            [&](GgufWriter* w) { w->Ints(key, counts); });
      }
      add("[0.3 ...]", [&](GgufWriter* w) { w->Floats(key, std::vector<float>(64, 0.3f)); });
      for (const bool first : {false, true}) {
        std::vector<bool> flags(64, false);
        flags[0] = first;
        add(first ? "[true false ...]" : "[false ...]",
            [&](GgufWriter* w) { w->Bools(key, flags); });
      }
      add("[\"x\" \"y\"]", [&](GgufWriter* w) { w->Strings(key, {"x", "y"}); });
      outcomes.Expect(key);
    }
  }
  // Returns the factors of frequencies of model.gguf, which the config depends on.
  std::vector<std::pair<std::string, std::vector<uint8_t>>> RopeFactors() {
    std::vector<std::pair<std::string, std::vector<uint8_t>>> factors;
    const GgufFile file(folder_ / "model.gguf");
    for (const SourceTensor& tensor : file.tensors()) {
      if (!tensor.name.starts_with("rope_f")) continue;
      factors.emplace_back(tensor.name, std::vector<uint8_t>(tensor.bytes));
      file.Read(tensor.offset, factors.back().second.data(), tensor.bytes);
    }
    return factors;
  }
  static void PutRopeFactors(
      const std::filesystem::path& path,
      const std::vector<std::pair<std::string, std::vector<uint8_t>>>& factors) {
    const GgufFile file(path);
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    for (const SourceTensor& tensor : file.tensors()) {
      for (const auto& [name, bytes] : factors) {
        if (name != tensor.name) continue;
        stream.seekp(static_cast<std::streamoff>(tensor.offset));
        stream.write(reinterpret_cast<const char*>(bytes.data()),
                     static_cast<std::streamsize>(bytes.size()));
      }
    }
  }

  int n_files_ = 0;
  json config_;
  TinyTensors tensors_;
};

inline const Renames kBert = {{"embeddings.word_embeddings", "token_embd"},
                              {"embeddings.position_embeddings", "position_embd"},
                              {"embeddings.token_type_embeddings", "token_types"},
                              {"embeddings.LayerNorm", "token_embd_norm"},
                              {"encoder.layer.", "blk."},
                              {"attention.output.LayerNorm", "attn_output_norm"},
                              {"attention.output.dense", "attn_output"},
                              {"attention.self.query", "attn_q"},
                              {"attention.self.key", "attn_k"},
                              {"attention.self.value", "attn_v"},
                              {"intermediate.dense", "ffn_up"},
                              {"output.LayerNorm", "layer_output_norm"},
                              {"output.dense", "ffn_down"}};

inline const Renames kUsual = {
    {"model.layers.", "blk."},        {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},   {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"},
    {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

}  // namespace arn::convert
