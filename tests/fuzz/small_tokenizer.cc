#include "tests/fuzz/small_tokenizer.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace arn::test {
namespace {

using nlohmann::json;

constexpr size_t kFirstTokens = 40;  // special tokens and the beginning of an alphabet
constexpr size_t kEvery = 16;        // of the others
constexpr size_t kMerges = 24;

// A vocabulary is an object of ids, or a list of texts and scores.
class Renumbering {
 public:
  explicit Renumbering(json* document) : document_(*document) {}

  void Run() {
    Number();
    KeepTokens();
    json& model = document_["model"];
    if (model.contains("merges")) KeepMerges(&model["merges"]);
    if (model.contains("unk_id") && model["unk_id"].is_number()) Renumber(&model["unk_id"]);
    for (json& token : document_["added_tokens"]) Renumber(&token["id"]);
    if (document_.contains("post_processor")) RenumberAll(&document_["post_processor"]);
  }

 private:
  json& vocabulary() { return document_["model"]["vocab"]; }

  void Number() {
    if (vocabulary().is_object()) {
      for (const auto& [text, id] : vocabulary().items()) ids_[text] = id.get<size_t>();
    } else {
      for (size_t id = 0; id < vocabulary().size(); ++id) {
        ids_[vocabulary()[id][0].get<std::string>()] = id;
      }
    }
  }

  void KeepTokens() {
    std::set<size_t> kept;
    for (const auto& [text, id] : ids_) {
      if (id < kFirstTokens || id % kEvery == 0) kept.insert(id);
    }
    const json& model = document_["model"];
    if (model.contains("unk_token") && model["unk_token"].is_string()) {
      Keep(model["unk_token"].get<std::string>(), &kept);
    }
    for (const json& token : document_["added_tokens"]) kept.insert(token["id"].get<size_t>());
    for (size_t i = 0; model.contains("merges") && i < model["merges"].size() && i < kMerges; ++i) {
      const auto [left, right] = PartsOf(model["merges"][i]);
      Keep(left, &kept);
      Keep(right, &kept);
      Keep(Merged(left, right), &kept);
    }
    for (const size_t id : kept) numbers_.emplace(id, numbers_.size());
    json small = vocabulary().is_object() ? json::object() : json::array();
    if (vocabulary().is_object()) {
      for (const auto& [text, id] : ids_) {
        if (kept.count(id) != 0) small[text] = numbers_.at(id);
      }
    } else {
      for (const size_t id : kept) {
        if (id < vocabulary().size()) small.push_back(vocabulary()[id]);
      }
    }
    vocabulary() = std::move(small);
  }

  void Keep(const std::string& text, std::set<size_t>* kept) const {
    const auto found = ids_.find(text);
    if (found != ids_.end()) kept->insert(found->second);
  }

  static std::pair<std::string, std::string> PartsOf(const json& merge) {
    if (merge.is_array()) return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    const auto text = merge.get<std::string>();
    const size_t space = text.find(' ');
    return {text.substr(0, space), text.substr(space + 1)};
  }

  // A prefix of tokens inside words is written once.
  std::string Merged(const std::string& left, const std::string& right) const {
    const json& model = document_["model"];
    const std::string prefix = model.contains("continuing_subword_prefix") &&
                                       model["continuing_subword_prefix"].is_string()
                                   ? model["continuing_subword_prefix"].get<std::string>()
                                   : "";
    return left + (right.rfind(prefix, 0) == 0 ? right.substr(prefix.size()) : right);
  }

  static void KeepMerges(json* merges) {
    while (merges->size() > kMerges) merges->erase(merges->size() - 1);
  }

  void Renumber(json* id) const {
    const auto found = numbers_.find(id->get<size_t>());
    if (found != numbers_.end()) *id = found->second;
  }

  // Those of {"ids": [1]}, and of ["</s>", 1].
  void RenumberAll(json* node) const {
    const bool is_pair = node->is_array() && node->size() == 2 && (*node)[0].is_string() &&
                         (*node)[1].is_number_unsigned();
    if (is_pair) Renumber(&(*node)[1]);
    if (node->is_object() && node->contains("ids")) {
      for (json& id : (*node)["ids"]) Renumber(&id);
    }
    if (!node->is_structured()) return;
    for (json& child : *node) RenumberAll(&child);
  }

  json& document_;
  std::map<std::string, size_t> ids_;
  std::map<size_t, size_t> numbers_;  // of those that stay
};

}  // namespace

nlohmann::json SmallTokenizer(nlohmann::json document) {
  Renumbering(&document).Run();
  return document;
}

}  // namespace arn::test
