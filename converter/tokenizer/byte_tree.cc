#include "converter/tokenizer/byte_tree.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "converter/tokenizer/token_texts.h"
#include "runtime/bundle/token_tables.h"

namespace arn::convert {
namespace {

void ReplaceAll(const std::string& from, const std::string& to, std::string* text) {
  if (from.empty()) return;
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at)) {
    text->replace(at, from.size(), to);
    at += to.size();
  }
}

// Returns the byte of "<0x41>". The reference's number parser accepts a sign.
std::optional<char> ByteOf(const std::string& text) {
  if (text.size() != 6 || text.compare(0, 3, "<0x") != 0 || text[5] != '>') return std::nullopt;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  const int high = text[3] == '+' ? 0 : digit(text[3]), low = digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high << 4 | low);
}

// Spells a token as runtime/text/token_decoder.cc appends it to a text, without UTF-8 errors.
class Speller {
 public:
  explicit Speller(const TokenizerTables& tables) : joins_with_spaces_(tables.decoders.empty()) {
    for (const auto& step : tables.decoders) {
      switch (step.kind) {
        case fbs::DecoderKind::Replace:
        case fbs::DecoderKind::Metaspace:
          pattern_ = step.pattern;
          content_ = step.content;
          drops_in_first_ = step.kind == fbs::DecoderKind::Metaspace && step.start != 0;
          break;
        case fbs::DecoderKind::ByteFallback: byte_fallback_ = true; break;
        case fbs::DecoderKind::ByteLevel:
        case fbs::DecoderKind::Fuse: break;
        case fbs::DecoderKind::Strip:
          strip_ = step.content;
          strip_count_ = step.start;
          break;
        case fbs::DecoderKind::WordPiece:
          is_word_piece_ = true;
          pattern_ = step.pattern;
          cleans_up_ = step.start != 0;
          break;
        case fbs::DecoderKind::WordEnd: is_word_end_ = true; break;
      }
    }
  }

  // False: the bytes depend on more than whether the token is the first.
  bool IsExact() const { return !is_word_end_ && strip_count_ <= 1; }

  std::string Bytes(const std::string& text, bool is_first) const {
    std::string bytes = is_word_piece_ ? WordPiece(text, is_first) : Plain(text, is_first);
    if (is_first && strip_count_ == 1 && bytes.compare(0, strip_.size(), strip_) == 0) {
      bytes.erase(0, strip_.size());
    }
    return bytes;
  }

 private:
  std::string Plain(const std::string& text, bool is_first) const {
    if (byte_fallback_) {
      if (const auto byte = ByteOf(text)) return {*byte};
    }
    std::string bytes = text;
    ReplaceAll(pattern_, is_first && drops_in_first_ ? "" : content_, &bytes);
    return joins_with_spaces_ && !is_first ? " " + bytes : bytes;
  }

  std::string WordPiece(const std::string& text, bool is_first) const {
    constexpr size_t kMaxCleanBytes = 1024;
    static const std::pair<const char*, const char*> kCleanUps[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    std::string word = text;
    if (!is_first && text.compare(0, pattern_.size(), pattern_) == 0) {
      word = text.substr(pattern_.size());
    } else if (!is_first) {
      word = " " + text;
    }
    if (!cleans_up_ || word.size() > kMaxCleanBytes) return word;
    for (const auto& [from, to] : kCleanUps) ReplaceAll(from, to, &word);
    return word;
  }

  bool joins_with_spaces_;
  bool is_word_piece_ = false;
  bool is_word_end_ = false;
  bool cleans_up_ = false;
  bool byte_fallback_ = false;
  bool drops_in_first_ = false;
  std::string pattern_, content_, strip_;
  uint32_t strip_count_ = 0;
};

// True if no normalizer changes the text for certain.
bool IsNormal(const std::string& text, const std::vector<TokenizerTables::Normalizer>& steps) {
  const auto all = [&text](bool (*is_fine)(unsigned char)) {
    return std::all_of(text.begin(), text.end(), is_fine);
  };
  const bool is_ascii = all([](unsigned char c) { return c < 0x80; });
  for (const auto& step : steps) {
    bool keeps = is_ascii;
    switch (step.kind) {
      case fbs::NormalizerKind::Nfc:
      case fbs::NormalizerKind::Nfd:
      case fbs::NormalizerKind::Nfkc:
      case fbs::NormalizerKind::Nfkd:
      case fbs::NormalizerKind::StripAccents:
      case fbs::NormalizerKind::StripNonspacing:
      case fbs::NormalizerKind::SpaceIdeographs: break;
      case fbs::NormalizerKind::Lowercase:
        keeps &= all([](unsigned char c) { return c < 'A' || c > 'Z'; });
        break;
      case fbs::NormalizerKind::CleanText:
      case fbs::NormalizerKind::Nmt:
      case fbs::NormalizerKind::Strip:
        keeps &= all([](unsigned char c) { return c > ' ' && c < 0x7F; });
        break;
      case fbs::NormalizerKind::Replace:
        keeps = !step.pattern_is_regex && text.find(step.pattern) == std::string::npos;
        break;
      case fbs::NormalizerKind::Prepend:
      case fbs::NormalizerKind::Charsmap: keeps = false; break;
    }
    if (!keeps) return false;
  }
  return true;
}

template <typename T>
void Append(const T* values, size_t n, std::vector<uint8_t>* out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values);
  out->insert(out->end(), bytes, bytes + n * sizeof(T));
}

}  // namespace

std::vector<uint8_t> BuildByteTree(std::vector<std::pair<std::string, uint32_t>> tokens) {
  std::erase_if(tokens, [](const auto& token) { return token.first.size() > kMaxByteDepth; });
  // std::string compares bytes as unsigned.
  std::sort(tokens.begin(), tokens.end());
  std::vector<ByteNode> nodes;
  std::vector<uint32_t> ids;
  std::vector<uint32_t> path;  // the nodes of the last token's bytes
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes[path.back()].byte_and_size |= static_cast<uint32_t>(nodes.size() - path.back()) << 8;
    }
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& bytes = tokens[i].first;
    size_t shared = 0;
    if (i > 0) {
      const std::string& last = tokens[i - 1].first;
      while (shared < last.size() && shared < bytes.size() && last[shared] == bytes[shared]) {
        ++shared;
      }
    }
    close(shared);
    for (size_t depth = shared; depth < bytes.size(); ++depth) {
      path.push_back(static_cast<uint32_t>(nodes.size()));
      nodes.push_back({static_cast<uint8_t>(bytes[depth]),
                       static_cast<uint32_t>(depth | ids.size() << ByteNode::kDepthBits)});
    }
    ids.push_back(tokens[i].second);
    if (nodes.size() > kMaxByteNodes || ids.size() > kMaxByteIds) return {};
  }
  close(0);
  const ByteTreeHeader header = {static_cast<uint32_t>(nodes.size()),
                                 static_cast<uint32_t>(ids.size())};
  nodes.push_back({0, header.n_ids << ByteNode::kDepthBits});
  std::vector<uint8_t> segment;
  Append(&header, 1, &segment);
  Append(nodes.data(), nodes.size(), &segment);
  Append(ids.data(), ids.size(), &segment);
  return segment;
}

namespace {

// Tells what may follow in UTF-8 (Unicode 15, table 3-7): `missing` continuation bytes, the next of
// them in [first, last].
struct Utf8State {
  uint32_t missing = 0;
  uint8_t first = 0x80, last = 0xBF;

  // Reads a byte. Returns false if it may not come.
  bool Read(uint8_t byte) {
    if (missing > 0) {
      if (byte < first || byte > last) return false;
      *this = {missing - 1, 0x80, 0xBF};
      return true;
    }
    if (byte < 0x80) return true;
    if (byte < 0xC2 || byte > 0xF4) return false;
    missing = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    if (byte == 0xE0) first = 0xA0;
    if (byte == 0xED) last = 0x9F;
    if (byte == 0xF0) first = 0x90;
    if (byte == 0xF4) last = 0x8F;
    return true;
  }
};

}  // namespace

std::vector<uint8_t> BuildBytePlaces(const std::vector<uint8_t>& tree, uint32_t n_tokens) {
  ByteTreeHeader header = {0, 0};
  std::memcpy(&header, tree.data(), sizeof header);
  std::vector<ByteNode> nodes(header.n_nodes + size_t{1});
  std::memcpy(nodes.data(), tree.data() + sizeof header, nodes.size() * sizeof(ByteNode));
  std::vector<uint32_t> ids(header.n_ids);
  std::memcpy(ids.data(), tree.data() + sizeof header + nodes.size() * sizeof(ByteNode),
              ids.size() * sizeof(uint32_t));
  std::vector<std::vector<uint32_t>> lists(kPlaceLists);
  // Before the byte of each depth.
  struct Step {
    Utf8State utf8;
    uint32_t n_characters = 0;
    bool is_ascii = true;
  };
  std::vector<Step> path(kMaxByteDepth + 1);
  std::vector<uint8_t> before(header.n_nodes), of_tokens(n_tokens);
  uint32_t bad_end = 0;  // of the last subtree that is not UTF-8
  for (uint32_t i = 0; i < header.n_nodes; ++i) {
    const ByteNode& node = nodes[i];
    Step step = path[node.depth()];
    before[i] = static_cast<uint8_t>(std::min(step.n_characters, kManyCharacters));
    if (i >= bad_end && !step.utf8.Read(node.byte())) {
      lists[kBadPlaces].push_back(i);
      bad_end = i + node.size();
    }
    const uint32_t list = i < bad_end ? kNoPlaces : PlaceList(node.byte());
    if (list != kNoPlaces && (list != kNonAsciiPlaces || step.is_ascii)) lists[list].push_back(i);
    if (list != kNoPlaces && list > kPunctuationPlaces) lists[kPunctuationPlaces].push_back(i);
    if (node.depth() == kLongDepth) lists[kLongPlaces].push_back(i);
    step.n_characters += path[node.depth()].utf8.missing == 0 ? 1 : 0;
    step.is_ascii = step.is_ascii && node.byte() < 0x80;
    path[node.depth() + 1] = step;
    const auto n = static_cast<uint8_t>(std::min(step.n_characters, kManyCharacters));
    for (uint32_t k = node.first_id(); k < nodes[i + 1].first_id(); ++k) of_tokens[ids[k]] = n;
  }
  std::vector<uint32_t> first = {0}, places;
  for (const std::vector<uint32_t>& list : lists) {
    places.insert(places.end(), list.begin(), list.end());
    first.push_back(static_cast<uint32_t>(places.size()));
  }
  std::vector<uint8_t> segment;
  Append(first.data(), first.size(), &segment);
  Append(places.data(), places.size(), &segment);
  for (const uint32_t place : places) segment.push_back(before[place]);
  Append(of_tokens.data(), of_tokens.size(), &segment);
  return segment;
}

void BuildByteTrees(const TokenTexts& texts, TokenizerTables* tables) {
  const Speller speller(*tables);
  if (!speller.IsExact()) {
    tables->warnings.push_back(
        "tokenizer: words end with a suffix or texts lose several spaces: the bundle has no "
        "constraints (JSON schemas, grammars, tool calls)");
    return;
  }
  std::vector<bool> is_left_out(texts.count());
  for (const auto& token : tables->added) {
    // The runtime gives the normalized text.
    if (token.special || (token.normalized && !IsNormal(token.content, tables->normalizers))) {
      is_left_out[token.id] = true;
    }
  }
  std::vector<std::pair<std::string, uint32_t>> tokens, first_tokens;
  bool differs = false;
  for (uint32_t id = 0; id < texts.count(); ++id) {
    if (texts.text(id).empty() || is_left_out[id]) continue;
    std::string bytes = speller.Bytes(texts.text(id), false);
    std::string first = speller.Bytes(texts.text(id), true);
    differs |= bytes != first;
    if (!bytes.empty()) tokens.emplace_back(std::move(bytes), id);
    first_tokens.emplace_back(std::move(first), id);
  }
  tables->byte_tree = BuildByteTree(std::move(tokens));
  if (differs && !tables->byte_tree.empty()) {
    tables->start_byte_tree = BuildByteTree(std::move(first_tokens));
    if (tables->start_byte_tree.empty()) tables->byte_tree.clear();
  }
  if (!tables->byte_tree.empty()) {
    tables->byte_places = BuildBytePlaces(tables->byte_tree, texts.count());
  }
}

}  // namespace arn::convert
