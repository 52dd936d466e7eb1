// Names by which requests choose the model: the bundle's, and one for each adapter of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/serve/json_fields.h"

namespace arn::serve {

// An adapter of the session, by its index, and what multiplies it.
struct AdapterUse {
  uint32_t index = 0;
  float scale = 1.0f;
  bool operator==(const AdapterUse&) const = default;
};
using AdapterUses = std::vector<AdapterUse>;  // by increasing index; empty: the bundle alone

struct ServedAdapter {
  std::string name;
  float scale = 1.0f;  // of requests that name it as their model
};

struct ServedModels {
  std::string base;
  std::vector<ServedAdapter> adapters;  // in the session's order

  // Throws tool::Error if two models have one name.
  void Check() const;
  // Reads `model`, one of the names or absent, and `lora`, a list of adapters with their scales.
  // Puts the name that the answer repeats into *name. Throws ApiError.
  AdapterUses Read(Fields* fields, std::string* name) const;
  // Returns the index of an adapter, or that of the bundle: the number of adapters. Throws ApiError
  // if there is no such model.
  uint32_t Find(const std::string& name) const;
};

}  // namespace arn::serve
