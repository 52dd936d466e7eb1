// What becomes of a GGUF file when one of its keys has another value, held against a table
// (data/gguf_keys.json): the sentence of the error, or what changes in the config.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "converter/gguf/gguf_config.h"
#include "converter/gguf/gguf_file.h"
#include "converter/gguf/gguf_model.h"
#include "nlohmann/json.hpp"
#include "tests/unit/converter/gguf/gguf_fixture.h"

namespace arn::convert {

using nlohmann::json;

class GgufKeyOutcomes {
 public:
  // `file` is the name of the case in the table. `path` has the file without changes.
  GgufKeyOutcomes(const std::string& file, const std::filesystem::path& path)
      : file_(file), whole_(Read(path)) {
    if (whole_.is_object()) architecture_ = whole_[":architecture"].get<std::string>();
  }

  // Adds what becomes of the file at `path`, in which a key has the value.
  void Add(const std::string& value, const std::filesystem::path& path) {
    std::string& values = outcomes_[TextOf(Read(path))];
    values += (values.empty() ? "" : ", ") + value;
  }
  // Compares what has been added with the table's row of the key and the file, and forgets it.
  void Expect(std::string key) {
    if (key.starts_with(architecture_ + ".")) key.replace(0, architecture_.size(), "*");
    json found = json::object();
    for (const auto& [text, values] : outcomes_) found[text] = values;
    outcomes_.clear();
    if (std::getenv("ARN_UPDATE_GOLDENS") != nullptr) return Update(key, found);
    static const json table = Load();
    for (const json& row : table.value(key, json::array())) {
      const json& files = row.at("files");
      if (std::find(files.begin(), files.end(), file_) == files.end()) continue;
      EXPECT_EQ(row.at("outcomes").dump(1), found.dump(1)) << key;
      return;
    }
    ADD_FAILURE() << file_ << ": " << key << " is not in " << ARN_GGUF_KEYS
                  << " (ARN_UPDATE_GOLDENS=1 adds it)";
  }

 private:
  static json Load() {
    std::ifstream stream(ARN_GGUF_KEYS);
    return json::parse(stream);
  }
  void Update(const std::string& key, const json& found) const {
    json table = Load();
    json rows = json::array();
    bool is_new = true;
    for (json row : table.value(key, json::array())) {
      json files = json::array();
      for (const json& name : row.at("files")) {
        if (name != file_) files.push_back(name);
      }
      if (row.at("outcomes") == found) {
        files.push_back(file_);
        std::sort(files.begin(), files.end());
        is_new = false;
      }
      row["files"] = files;
      if (!files.empty()) rows.push_back(row);
    }
    if (is_new) rows.push_back({{"files", {file_}}, {"outcomes", found}});
    std::sort(rows.begin(), rows.end(),
              [](const json& a, const json& b) { return a["files"] < b["files"]; });
    table[key] = rows;
    std::ofstream(ARN_GGUF_KEYS) << table.dump(1) << '\n';
  }

  // Returns the config of a file with its warnings and end tokens, or the error's text.
  static json Read(const std::filesystem::path& path) {
    const auto without_path = [&](const std::string& text) {
      const std::string start = path.string() + ": ";
      return text.starts_with(start) ? text.substr(start.size()) : text;
    };
    try {
      std::vector<std::string> warnings;
      const GgufWeights weights = ReadGgufWeights(path, &warnings);
      const GgufFile file(path);
      ConfigReader metadata(file.metadata(), path.string());
      const GgufFacts facts = FactsOf(file);
      json config = MakeConfig(ReadGgufArchitecture(facts, &metadata), facts, &metadata);
      for (std::string& text : warnings) text = without_path(text);
      config[":architecture"] = weights.architecture;
      config[":shown"] = weights.spec.architecture;
      config[":warnings"] = warnings;
      config[":bos"] = weights.generation.bos_ids;
      config[":eos"] = weights.generation.eos_ids;
      config[":pad"] = weights.generation.pad_id;
      return config;
    } catch (const ConvertError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(path.filename().string()));
      return without_path(error.what());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      return error.what();
    }
  }
  static GgufFacts FactsOf(const GgufFile& file) {
    GgufFacts facts;
    for (const SourceTensor& tensor : file.tensors()) {
      facts.tensors.insert(tensor.name);
      facts.shapes[tensor.name] = tensor.shape;
      const auto read = [&](const char* name, std::vector<float>* values) {
        if (tensor.name != name) return;
        values->resize(tensor.elements());
        file.Read(tensor.offset, values->data(), values->size() * sizeof(float));
      };
      read("rope_factors_short.weight", &facts.short_factors);
      read("rope_factors_long.weight", &facts.long_factors);
      read("rope_freqs.weight", &facts.rope_factors);
    }
    facts.has_rope_factors = !facts.rope_factors.empty();
    facts.vocab = static_cast<uint32_t>(facts.shapes.at("token_embd.weight")[0]);
    return facts;
  }
  // What the table has: an error up to what was found or is supported, or what differs from the
  // file without changes.
  std::string TextOf(const json& outcome) const {
    std::string text;
    if (outcome.is_string() || !whole_.is_object()) {
      text = outcome.is_string() ? outcome.get<std::string>() : "no error";
      for (const char* end : {", found ", " (supported: "}) text = text.substr(0, text.find(end));
    } else {
      json changes = json::object();
      for (const auto& [key, value] : outcome.items()) {
        if (!whole_.contains(key) || whole_[key] != value) changes[key] = value;
      }
      for (const auto& [key, value] : whole_.items()) {
        if (!outcome.contains(key)) changes[key] = "gone";
      }
      text = changes.empty() ? "as before" : changes.dump();
    }
    const size_t at = architecture_.empty() ? std::string::npos : text.find(architecture_ + ".");
    return at == std::string::npos ? text : text.replace(at, architecture_.size(), "*");
  }

  const std::string file_;
  const json whole_;
  std::string architecture_;
  std::map<std::string, std::string> outcomes_;
};

}  // namespace arn::convert
