// Typed access to the keys of one architecture in a GGUF file's metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "converter/hf/config_reader.h"

namespace arn::convert {

class GgufKeys {
 public:
  // `metadata` must outlive the object.
  GgufKeys(const std::string& architecture, ConfigReader* metadata)
      : prefix_(architecture + "."), metadata_(metadata) {}

  const std::string& label() const { return metadata_->label(); }
  std::string Key(const char* name) const { return prefix_ + name; }
  bool Has(const char* name) { return metadata_->Has(Key(name)); }
  void MarkRead(const char* name) { metadata_->MarkRead(Key(name)); }

  // Reads a number, or a list with the same number for all layers. 0 means that the architecture
  // does not use the key.
  std::optional<uint32_t> Count(const char* name);
  uint32_t Required(const char* name);
  // Reads the number of layers, whose bound is one of the cost of a damaged file.
  uint32_t Blocks();
  std::optional<double> Number(const char* name) { return metadata_->Number(Key(name)); }
  bool Bool(const char* name, bool fallback) { return metadata_->Bool(Key(name), fallback); }

  // Reads a number for each of `n` layers: a list, or one number for all.
  std::vector<uint32_t> ByLayer(const char* name, uint32_t n);
  // Reads a number, which may be infinite, for each of `n` layers.
  std::vector<double> Numbers(const char* name, uint32_t n);
  // Reads true or false for each of at least `n` layers; empty if the key is absent.
  std::vector<bool> Flags(const char* name, uint32_t n);

  [[noreturn]] void Fail(const char* name, const char* expected) {
    metadata_->FailKey(Key(name), expected);
  }

 private:
  const std::string prefix_;
  ConfigReader* metadata_;
};

}  // namespace arn::convert
