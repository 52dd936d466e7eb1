#include "tests/fuzz/json_edits.h"

#include <iterator>
#include <utility>

namespace arn::test {
namespace {

using nlohmann::json;

json* ChildOf(json* node, size_t n) {
  return &*std::next(node->begin(), static_cast<std::ptrdiff_t>(n));
}

// Picks a random node. Longer lists and objects are picked less often than their items.
json* PickNode(json* root, Choices* choices) {
  json* node = root;
  for (int depth = 0; depth < 6 && node->is_structured() && !node->empty(); ++depth) {
    const size_t child = choices->Below(node->size() + 1);
    if (child == node->size()) break;
    node = ChildOf(node, child);
  }
  return node;
}

json PickValue(const JsonMaterial& material, const json& root, Choices* choices) {
  if (choices->Below(4) == 0) {
    json copy = root;
    return *PickNode(&copy, choices);
  }
  return material.values[choices->Below(material.values.size())];
}

}  // namespace

void EditJson(const JsonMaterial& material, json* root, Choices* choices) {
  json* const node = PickNode(root, choices);
  const size_t kind = choices->Below(4);
  if (kind == 0 && node->is_array()) {
    node->push_back(PickValue(material, *root, choices));
  } else if (kind == 1 && node->is_structured() && !node->empty()) {
    node->erase(
        std::next(node->begin(), static_cast<std::ptrdiff_t>(choices->Below(node->size()))));
  } else if (kind == 2 && node->is_object() && !material.keys.empty()) {
    const std::string& key = material.keys[choices->Below(material.keys.size())];
    json value = PickValue(material, *root, choices);
    (*node)[key] = std::move(value);
  } else {
    json value = PickValue(material, *root, choices);
    *node = std::move(value);
  }
}

}  // namespace arn::test
