// Reads a SentencePiece model file: a protocol buffer (sentencepiece_model.proto), parsed by hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace arn::convert {

enum class PieceType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
enum class SentencePieceKind : uint8_t { kUnigram = 1, kBpe, kWord, kChar };

struct SentencePieceFile {
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };
  std::vector<Piece> pieces;
  // trainer_spec
  SentencePieceKind kind = SentencePieceKind::kUnigram;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  int64_t bos_id = 1;
  int64_t eos_id = 2;
  int64_t pad_id = -1;
  // normalizer_spec
  std::vector<uint8_t> charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

// Throws TokenizerError, with `name` as the file, if the bytes are not such a message or hold an
// unsupported value. Checks every length.
SentencePieceFile ParseSentencePiece(const uint8_t* bytes, size_t size, const std::string& name);

SentencePieceFile ReadSentencePieceFile(const std::filesystem::path& path);

}  // namespace arn::convert
