// Converts a checkpoint's tokenizer.json into the tables that the runtime uses in place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "nlohmann/json_fwd.hpp"
#include "runtime/bundle/bundle_generated.h"

namespace arn::convert {

// All of a bundle's tokenizer data. Byte vectors become segments.
struct TokenizerTables {
  struct Normalizer {
    fbs::NormalizerKind kind;
    std::string pattern;
    std::string content;
    bool pattern_is_regex = false;
    bool left = false;
    bool right = false;
    std::vector<uint8_t> charsmap = {};  // a segment
    uint32_t growth = 0;
    bool longest = false;
  };
  struct PreTokenizer {
    fbs::PreTokenizerKind kind;
    std::string regex;
    fbs::SplitBehavior behavior = fbs::SplitBehavior::Isolated;
    bool invert = false;
    bool add_prefix_space = false;
    bool use_regex = false;
    bool individual_digits = false;
    std::string replacement;
    fbs::PrependScheme prepend_scheme = fbs::PrependScheme::Always;
    bool split = false;
  };
  struct Decoder {
    fbs::DecoderKind kind;
    std::string pattern;
    std::string content;
    uint32_t start = 0;
    uint32_t stop = 0;
  };
  struct AddedToken {
    std::string content;
    uint32_t id = 0;
    bool special = false;
    bool lstrip = false;
    bool rstrip = false;
    bool single_word = false;
    bool normalized = false;
  };

  // Segments, in the formats of runtime/bundle/token_tables.h.
  std::vector<uint8_t> token_bytes;
  std::vector<uint8_t> token_offsets;
  std::vector<uint8_t> token_table;
  std::vector<uint8_t> merge_table;
  std::vector<uint8_t> trie;
  std::vector<uint8_t> scores;
  std::vector<uint8_t> byte_tree;
  std::vector<uint8_t> start_byte_tree;
  std::vector<uint8_t> byte_places;

  fbs::TokenizerModel model = fbs::TokenizerModel::Bpe;
  double unk_score = 0;
  std::string subword_prefix;
  std::string word_suffix;
  uint32_t max_word_chars = 0;
  uint32_t n_tokens = 0;
  bool byte_fallback = false;
  bool fuse_unk = false;
  bool ignore_merges = false;
  int32_t unk_id = -1;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  // True if the first of them stands for a normalizer.
  bool normalizes_to_bytes = false;
  std::vector<Decoder> decoders;
  std::vector<AddedToken> added;
  std::vector<uint32_t> prefix_ids;
  std::vector<uint32_t> suffix_ids;
  std::vector<uint32_t> separator_ids;  // between the two texts of a pair
  // False if a pair is not the prefix, a text, the separator, a text and the suffix, or is unknown.
  bool knows_pair = true;

  // bos_token, eos_token and pad_token of tokenizer_config.json; -1 if absent.
  int32_t bos_id = -1;
  int32_t eos_id = -1;
  int32_t pad_id = -1;
  // Settings without effect; one sentence each.
  std::vector<std::string> warnings;
};

// True if the folder has a file that ConvertTokenizer can read.
bool HasTokenizer(const std::filesystem::path& folder);

// Reads tokenizer.json of `folder`, else its SentencePiece model (tokenizer.model, spiece.model or
// sentencepiece.bpe.model), with tokenizer_config.json and special_tokens_map.json if present.
// Refuses everything that would make the runtime's ids differ from those of Hugging Face
// tokenizers, or of SentencePiece: returns false and sets *error to one sentence with the file and
// the place in it.
//
// Takes the special tokens around a text from the post_processor alone: with a tokenizer.json,
// transformers 5 ignores add_bos_token and add_eos_token of tokenizer_config.json
// (PreTrainedTokenizerBase._from_pretrained). Warns if they differ.
bool ConvertTokenizer(const std::filesystem::path& folder, TokenizerTables* out,
                      std::string* error);

// Converts a file's contents, without the files beside it.
bool ConvertTokenizerJson(const std::string& text, TokenizerTables* out, std::string* error);
// Converts a tokenizer.json built in memory. REQUIRES: its texts are valid UTF-8.
bool ConvertTokenizerObject(const nlohmann::json& tokenizer, TokenizerTables* out,
                            std::string* error);
bool ConvertSentencePieceBytes(const std::string& bytes, TokenizerTables* out, std::string* error);

// Segments as written. Unused ones have size 0.
struct TokenizerSegments {
  fbs::Segment token_bytes;
  fbs::Segment token_offsets;
  fbs::Segment token_table;
  fbs::Segment merge_table;
  fbs::Segment trie;
  fbs::Segment scores;
  fbs::Segment byte_tree;
  fbs::Segment start_byte_tree;
  fbs::Segment byte_places;
  std::vector<fbs::Segment> charsmaps;  // one per normalizer
};

// Pairs the bytes of each segment to write with its field in `segments`. SegmentParts() resizes
// `segments`, which must outlive the result.
struct SegmentPart {
  const std::vector<uint8_t>* bytes;
  fbs::Segment* place;
};
std::vector<SegmentPart> SegmentParts(const TokenizerTables& tables, TokenizerSegments* segments);

flatbuffers::Offset<fbs::Tokenizer> CreateTokenizer(const TokenizerTables& tables,
                                                    const TokenizerSegments& segments,
                                                    flatbuffers::FlatBufferBuilder* builder);

}  // namespace arn::convert
