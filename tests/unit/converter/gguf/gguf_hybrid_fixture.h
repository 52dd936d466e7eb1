// Writes golden cases as folders and as the GGUF files that llama.cpp's converter makes of them.
#pragma once

#include <cmath>

#include "nlohmann/json.hpp"
#include "tests/unit/converter/gguf/gguf_family_fixture.h"

namespace arn::convert {

class GgufHybridTest : public GgufFamilyTest {
 protected:
  // Starts a file with the keys that every architecture has, and `numbers` as whole numbers or
  // lists of them.
  void Begin(const std::string& architecture, const nlohmann::json& numbers) {
    architecture_ = architecture;
    writer_ = test::GgufWriter();
    writer_.String("general.architecture", architecture);
    const auto copy = [&](const char* key, const char* from) {
      if (config_.contains(from) && !numbers.contains(key))
        writer_.Uint(architecture + "." + key, config_.at(from));
    };
    copy("block_count", "num_hidden_layers");
    copy("context_length", "max_position_embeddings");
    copy("embedding_length", "hidden_size");
    copy("attention.head_count", "num_attention_heads");
    for (const auto& [key, value] : numbers.items()) {
      if (value.is_array()) {
        PutList(key, value);
      } else {
        writer_.Uint(architecture + "." + key, value);
      }
    }
    writer_.Uint("tokenizer.ggml.bos_token_id", 1);
    writer_.Uint("tokenizer.ggml.eos_token_id", 2);
    writer_.Uint("tokenizer.ggml.padding_token_id", 0);
  }
  void PutFloat(const char* key, float value) { writer_.Float(architecture_ + "." + key, value); }
  void PutBool(const char* key, bool value) { writer_.Bool(architecture_ + "." + key, value); }
  void PutList(const std::string& key, const nlohmann::json& values) {
    const std::string name = architecture_ + "." + key;
    if (values.at(0).is_boolean()) return writer_.Bools(name, values);
    if (values.at(0).is_number_float()) return writer_.Floats(name, values);
    writer_.Ints(name, values);
  }

  // Changes the values of each tensor whose name contains `part`.
  template <typename Change>
  void Each(const std::string& part, const Change& change) {
    for (auto& [name, tensor] : tensors_) {
      if (name.find(part) == std::string::npos) continue;
      std::vector<float> values = Floats(tensor);
      change(&values, &tensor);
      tensor.bytes = test::EncodeFloats(values, "F32");
    }
  }
  void AddToEach(const std::string& part, float offset) {
    Each(part, [&](std::vector<float>* values, TinyTensor*) {
      for (float& v : *values) v += offset;
    });
  }
  void NegateExponentials(const std::string& part) {
    Each(part, [](std::vector<float>* values, TinyTensor*) {
      for (float& v : *values) v = static_cast<float>(-std::exp(static_cast<double>(v)));
    });
  }
  // Reorders `in_group` heads of each of `groups` so that the first of every group come first, then
  // the second: rows from `first` on, or columns.
  void PutHeadsInTurn(const std::string& part, bool in_columns, size_t first, size_t groups,
                      size_t in_group, size_t head_dim) {
    Each(part, [&](std::vector<float>* values, TinyTensor* tensor) {
      const size_t rows = tensor->shape[0], cols = values->size() / rows;
      const std::vector<float> from = *values;
      const auto source = [&](size_t at) {
        if (at < first) return at;
        const size_t turn = (at - first) / head_dim,
                     head = turn % groups * in_group + turn / groups;
        return first + head * head_dim + (at - first) % head_dim;
      };
      for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < cols; ++c) {
          (*values)[r * cols + c] =
              from[(in_columns ? r : source(r)) * cols + (in_columns ? source(c) : c)];
        }
      }
    });
  }
  void SqueezeConvolutions(const std::string& part) {
    for (auto& [name, tensor] : tensors_) {
      if (name.find(part) != std::string::npos && tensor.shape.size() == 3) {
        tensor.shape.erase(tensor.shape.begin() + 1);
      }
    }
  }
  // Stacks the matrices PREFIX.E.SUFFIX of each layer's experts in one tensor PREFIX.SUFFIX.
  void StackExperts() {
    test::TinyTensors all;
    for (const auto& [name, tensor] : tensors_) {
      const size_t at = name.find(".experts.");
      if (at == std::string::npos) {
        all[name] = tensor;
        continue;
      }
      const size_t number = at + 9, end = name.find('.', number);
      // Keeps the order of the numbers, which std::map does not from 10 on.
      ASSERT_LT(end - number, 2u);
      TinyTensor& stack = all[name.substr(0, number) + name.substr(end + 1)];
      if (stack.shape.empty()) stack = {"F32", {0, tensor.shape[0], tensor.shape[1]}, {}};
      ++stack.shape[0];
      stack.bytes.insert(stack.bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
    tensors_ = std::move(all);
  }

  // Writes the tensors under GGUF names: each entry of the list in turn replaces its first
  // occurrence in a name. Then expects the same bundle of folder and file. `assumption` is part of
  // the expected warning; empty: none.
  void ExpectSame(const Renames& renames, const std::string& assumption = "") {
    AddRest(renames, &writer_);
    GgufFamilyTest::ExpectSame(writer_, assumption.c_str());
  }

  const Renames kUsual = {
      {"model.layers.", "blk."},           {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},       {"lm_head", "output"},
      {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"}, {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"},
  };
  static Renames Both(Renames first, const Renames& then) {
    first.insert(first.end(), then.begin(), then.end());
    return first;
  }

  std::string architecture_;
  test::GgufWriter writer_;
};

}  // namespace arn::convert
