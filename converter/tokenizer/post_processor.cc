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

// Reads the ids between the two texts of a pair. Leaves them empty if the template is not [before,
// A, between, B, behind], with the ids of a single text before and behind.
void ReadSeparator(const JsonNode& node, TokenizerTables* tables) {
  Ids parts[3];
  size_t at = 0;
  tables->knows_pair = false;
  for (const JsonNode& item : node["pair"].Items()) {
    if (!item["Sequence"].IsNull()) {
      if (at == 2 || item["Sequence"]["id"].String() != (at == 0 ? "A" : "B")) return;
      ++at;
      continue;
    }
    const JsonNode ids = node["special_tokens"][item["SpecialToken"]["id"].String()]["ids"];
    for (const JsonNode& id : ids.Items()) parts[at].push_back(id.Uint());
  }
  if (at != 2 || parts[0] != tables->prefix_ids || parts[2] != tables->suffix_ids) return;
  tables->separator_ids = parts[1];
  tables->knows_pair = true;
}

}  // namespace

void ReadPostProcessor(const JsonNode& node, TokenizerTables* tables) {
  if (node.IsNull()) return;
  const std::string type = node["type"].String();
  if (type == "Sequence") {
    for (const JsonNode& item : node["processors"].Items()) ReadPostProcessor(item, tables);
  } else if (type == "TemplateProcessing") {
    ReadTemplate(node, tables);
    if (!node["pair"].IsNull()) ReadSeparator(node, tables);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    const uint32_t sep = ReadPair(node["sep"]);
    AddAround(node, {ReadPair(node["cls"])}, {sep}, tables);
    tables->separator_ids.assign(type == "BertProcessing" ? 1 : 2, sep);
  } else if (type != "ByteLevel") {  // only changes offsets
    node["type"].FailUnsupported();
  }
}

}  // namespace arn::convert
