// From a checkpoint's tokenizer.json to the tables that the runtime uses in place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "nlohmann/json.hpp"
#include "runtime/bundle/bundle_generated.h"

namespace arn::convert {

// Everything that a bundle says about a tokenizer. The vectors of bytes become segments.
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
  std::vector<Decoder> decoders;
  std::vector<AddedToken> added;
  std::vector<uint32_t> prefix_ids;
  std::vector<uint32_t> suffix_ids;

  // bos_token, eos_token and pad_token of tokenizer_config.json; -1 when absent.
  int32_t bos_id = -1;
  int32_t eos_id = -1;
  int32_t pad_id = -1;
  // What was read and has no effect; one sentence each.
  std::vector<std::string> warnings;
};

// Whether the folder has a file that ConvertTokenizer reads a tokenizer from.
bool HasTokenizer(const std::filesystem::path& folder);

// Reads tokenizer.json of `folder`, or else the model of SentencePiece that is there
// (tokenizer.model, spiece.model or sentencepiece.bpe.model), and tokenizer_config.json and
// special_tokens_map.json when they are there. Everything that would make the runtime's ids differ
// from those of Hugging Face tokenizers, or of SentencePiece, is refused: then false is returned
// and *error is one sentence that names the file and the place in it.
//
// The special tokens around a text are those of tokenizer.json's post_processor and no others:
// transformers 5 drops add_bos_token and add_eos_token of tokenizer_config.json when there is a
// tokenizer.json (PreTrainedTokenizerBase._from_pretrained). A warning says when they differ.
bool ConvertTokenizer(const std::filesystem::path& folder, TokenizerTables* out,
                      std::string* error);

// The same of a file's contents, without the files beside it.
bool ConvertTokenizerJson(const std::string& text, TokenizerTables* out, std::string* error);
// A tokenizer.json that was made in memory. Its texts are valid UTF-8.
bool ConvertTokenizerObject(const nlohmann::json& tokenizer, TokenizerTables* out,
                            std::string* error);
bool ConvertSentencePieceBytes(const std::string& bytes, TokenizerTables* out, std::string* error);

// Where the writer put the segments. Those that a tokenizer has no use for have no bytes.
struct TokenizerSegments {
  fbs::Segment token_bytes;
  fbs::Segment token_offsets;
  fbs::Segment token_table;
  fbs::Segment merge_table;
  fbs::Segment trie;
  fbs::Segment scores;
  std::vector<fbs::Segment> charsmaps;  // of each normalizer
};

// The bytes of each segment that is to be written, and where its place goes in `segments`, which
// outlives the result and gets its size here.
struct SegmentPart {
  const std::vector<uint8_t>* bytes;
  fbs::Segment* place;
};
std::vector<SegmentPart> SegmentParts(const TokenizerTables& tables, TokenizerSegments* segments);

flatbuffers::Offset<fbs::Tokenizer> CreateTokenizer(const TokenizerTables& tables,
                                                    const TokenizerSegments& segments,
                                                    flatbuffers::FlatBufferBuilder* builder);

}  // namespace arn::convert
