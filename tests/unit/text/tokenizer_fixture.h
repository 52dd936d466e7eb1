// A tokenizer of a tokenizer.json, in memory as a bundle would hold it.
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

// The fbs table and the segment area of a bundle's tokenizer, without the bundle.
struct TokenizerImage {
  std::vector<uint8_t> index;      // a FlatBuffer whose root is fbs::Tokenizer
  std::vector<uint64_t> segments;  // 8-byte aligned bytes
  size_t segment_bytes = 0;

  const fbs::Tokenizer& table() const;
  Span<const std::byte> area() const;
};
TokenizerImage MakeImage(const convert::TokenizerTables& tables);

class LoadedTokenizer {
 public:
  // Converts tokenizer.json of `folder`; error() says why there is none.
  static LoadedTokenizer FromFolder(const std::filesystem::path& folder);
  static LoadedTokenizer FromImage(TokenizerImage image);

  bool ok() const { return tokenizer_ != nullptr; }
  const std::string& error() const { return error_; }
  // The text is bytes to it, nothing changes or adds any, and it has a token for each: decoding
  // gives back what was encoded.
  bool GivesBack(const std::string& text) const;
  const Tokenizer& operator*() const { return *tokenizer_; }
  const Tokenizer* operator->() const { return tokenizer_; }
  uint64_t arena_used_bytes() const { return arena_used_bytes_; }
  uint64_t arena_bytes() const { return arena_.size() * sizeof(max_align_t); }

  // Exactly EncodeScratchBytes of scratch. An error is the only element of the result's `error`.
  struct Encoded {
    Status status = Status::kOk;
    std::string error;
    std::vector<int32_t> ids;
  };
  Encoded Encode(const std::string& text, bool add_special = false) const;
  std::string Decode(const std::vector<int32_t>& ids, bool skip_special) const;
  // The same through DecodeToken and DecodeFinish.
  std::string DecodeStream(const std::vector<int32_t>& ids, bool skip_special) const;

 private:
  // Fills known_bytes_.
  void FindBytes();

  std::unique_ptr<TokenizerImage> image_;
  std::vector<bool> known_bytes_;  // empty when the tokenizer is not byte-level and plain
  std::vector<max_align_t> arena_;
  uint64_t arena_used_bytes_ = 0;
  Tokenizer* tokenizer_ = nullptr;
  std::string error_;
};

}  // namespace arn::test
