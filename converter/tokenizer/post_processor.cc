// Reads the post_processor of a tokenizer.json.
#include <vector>

#include "converter/tokenizer/special_tokens.h"

namespace arn::convert {
namespace {

using Ids = std::vector<uint32_t>;

void AddAround(const JsonNode& node, const Ids& before, const Ids& behind,
               TokenizerTables* tables) {
  if (!tables->prefix_ids.empty() || !tables->suffix_ids.empty()) {
    // A second template would treat the first one's tokens as another text.
    node.Fail("is a second template, which is not supported");
  }
  tables->prefix_ids = before;
  tables->suffix_ids = behind;
}

// Returns the id of ["[CLS]", 101].
uint32_t ReadPair(const JsonNode& node) {
  const std::vector<JsonNode> pair = node.Items();
  if (pair.size() != 2) node.Fail("is not a string and its id");
  return pair[1].Uint();
}

// TemplateProcessing: reads the ids before and after the text.
void ReadTemplate(const JsonNode& node, TokenizerTables* tables) {
  bool has_text = false;
  Ids before, behind;
  for (const JsonNode& item : node["single"].Items()) {
    const JsonNode special = item["SpecialToken"];
    const JsonNode sequence = item["Sequence"];
    if (!sequence.IsNull()) {
      if (has_text || sequence["id"].String() != "A") sequence.FailUnsupported();
      has_text = true;
      continue;
    }
    if (special.IsNull()) item.FailUnsupported();
    const JsonNode ids = node["special_tokens"][special["id"].String()]["ids"];
    for (const JsonNode& id : ids.Items()) {
      (has_text ? behind : before).push_back(id.Uint());
    }
  }
  if (!has_text) node["single"].Fail("has no place for the text");
  AddAround(node, before, behind, tables);
}

}  // namespace

void ReadPostProcessor(const JsonNode& node, TokenizerTables* tables) {
  if (node.IsNull()) return;
  const std::string type = node["type"].String();
  if (type == "Sequence") {
    for (const JsonNode& item : node["processors"].Items()) ReadPostProcessor(item, tables);
  } else if (type == "TemplateProcessing") {
    ReadTemplate(node, tables);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    AddAround(node, {ReadPair(node["cls"])}, {ReadPair(node["sep"])}, tables);
  } else if (type != "ByteLevel") {  // only changes offsets
    node["type"].FailUnsupported();
  }
}

}  // namespace arn::convert
