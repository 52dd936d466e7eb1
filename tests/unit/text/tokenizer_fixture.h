// Loads a tokenizer.json into memory as in a bundle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "converter/tokenizer/tokenizer_tables.h"
#include "platform/base/diag.h"
#include "runtime/text/tokenizer.h"

namespace arn::test {

// The fbs table and the segments of a bundle's tokenizer, without the bundle.
struct TokenizerImage {
  std::vector<uint8_t> index;      // a FlatBuffer with the root fbs::Tokenizer
  std::vector<uint64_t> segments;  // segment bytes, 8-byte aligned
  size_t segment_bytes = 0;

  const fbs::Tokenizer& table() const;
  Span<const std::byte> area() const;
};
TokenizerImage MakeImage(const convert::TokenizerTables& tables);

class LoadedTokenizer {
 public:
  // Converts tokenizer.json of `folder`. On failure error() is the reason.
  static LoadedTokenizer FromFolder(const std::filesystem::path& folder);
  static LoadedTokenizer FromImage(TokenizerImage image);

  // Zeroes the segments that the tokenizer reads in place.
  void ZeroSegments();

  bool ok() const { return tokenizer_ != nullptr; }
  const std::string& error() const { return error_; }
  // True if decoding gives back the text: a byte-level tokenizer that does not normalise, with a
  // token for each byte of the text.
  bool GivesBack(const std::string& text) const;
  const Tokenizer& operator*() const { return *tokenizer_; }
  const Tokenizer* operator->() const { return tokenizer_; }
  uint64_t arena_used_bytes() const { return arena_used_bytes_; }
  uint64_t arena_bytes() const { return arena_.size() * sizeof(max_align_t); }

  // Encodes with exactly EncodeScratchBytes of scratch. On failure only `status` and `error` are
  // set.
  struct Encoded {
    Status status = Status::kOk;
    std::string error;
    std::vector<int32_t> ids;
  };
  Encoded Encode(const std::string& text, bool add_special = false) const;
  Encoded Encode(const std::string& text, const Tokenizer::EncodeOptions& options) const;
  std::string Decode(const std::vector<int32_t>& ids, bool skip_special) const;
  // As Decode, but through DecodeToken and DecodeFinish.
  std::string DecodeStream(const std::vector<int32_t>& ids, bool skip_special) const;

 private:
  // Fills known_bytes_.
  void FindBytes();

  std::unique_ptr<TokenizerImage> image_;
  std::vector<bool> known_bytes_;  // empty unless plain byte-level
  std::vector<max_align_t> arena_;
  uint64_t arena_used_bytes_ = 0;
  Tokenizer* tokenizer_ = nullptr;
  std::string error_;
};

}  // namespace arn::test
