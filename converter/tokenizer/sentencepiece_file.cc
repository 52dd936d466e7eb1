#include "converter/tokenizer/sentencepiece_file.h"

#include <cmath>
#include <cstring>
#include <fstream>

#include "converter/tokenizer/file_text.h"
#include "converter/tokenizer/json_node.h"

namespace arn::convert {
namespace {

struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
};

// Reads the fields of one message, in order.
class MessageReader {
 public:
  enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  struct Field {
    uint64_t number = 0;
    Wire wire = kVarint;
    uint64_t value = 0;  // of all wire types except kBytes
    Bytes bytes;
  };

  MessageReader(Bytes message, const std::string& file) : left_(message), file_(file) {}

  // Returns false at the end.
  bool Next(Field* field) {
    if (left_.size == 0) return false;
    *field = Field();
    const uint64_t tag = Varint();
    field->number = tag >> 3;
    switch (tag & 7) {
      case kVarint: field->value = Varint(); break;
      case kFixed64: field->value = Fixed(8); break;
      case kBytes: field->bytes = Take(Varint()); break;
      case kFixed32: field->value = Fixed(4); break;
      default: Fail("has a field of an unknown kind");
    }
    field->wire = static_cast<Wire>(tag & 7);
    return true;
  }

  [[noreturn]] void Fail(const char* message) const {
    throw TokenizerError(file_ + ": " + message);
  }

 private:
  Bytes Take(uint64_t size) {
    if (size > left_.size) Fail("ends inside a field");
    const Bytes taken = {left_.data, static_cast<size_t>(size)};
    left_ = {left_.data + size, left_.size - static_cast<size_t>(size)};
    return taken;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = *Take(1).data;
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    Fail("has a number that is too long");
  }
  uint64_t Fixed(uint32_t bytes) {
    const Bytes taken = Take(bytes);
    uint64_t value = 0;
    for (uint32_t i = bytes; i-- > 0;) value = value << 8 | taken.data[i];
    return value;
  }

  Bytes left_;
  const std::string& file_;
};

using Field = MessageReader::Field;

SentencePieceFile::Piece ReadPiece(Bytes message, const std::string& file) {
  SentencePieceFile::Piece piece;
  MessageReader reader(message, file);
  for (Field field; reader.Next(&field);) {
    if (field.number == 1 && field.wire == MessageReader::kBytes) {
      piece.text.assign(reinterpret_cast<const char*>(field.bytes.data), field.bytes.size);
    } else if (field.number == 2 && field.wire == MessageReader::kFixed32) {
      const uint32_t bits = static_cast<uint32_t>(field.value);
      std::memcpy(&piece.score, &bits, sizeof bits);
      if (!std::isfinite(piece.score)) reader.Fail("has a score that is not a number");
    } else if (field.number == 3 && field.wire == MessageReader::kVarint) {
      if (field.value < 1 || field.value > static_cast<uint64_t>(PieceType::kByte)) {
        reader.Fail("has a piece of an unknown type");
      }
      piece.type = static_cast<PieceType>(field.value);
    }
  }
  return piece;
}

void ReadTrainer(Bytes message, const std::string& file, SentencePieceFile* out) {
  MessageReader reader(message, file);
  for (Field field; reader.Next(&field);) {
    if (field.wire != MessageReader::kVarint) continue;
    // Negative numbers are 64-bit varints.
    const int64_t number = static_cast<int64_t>(field.value);
    switch (field.number) {
      case 3:
        if (number < 1 || number > static_cast<int64_t>(SentencePieceKind::kChar)) {
          reader.Fail("is of an unknown model_type");
        }
        out->kind = static_cast<SentencePieceKind>(number);
        break;
      case 24: out->treat_whitespace_as_suffix = number != 0; break;
      case 35: out->byte_fallback = number != 0; break;
      case 41: out->bos_id = number; break;
      case 42: out->eos_id = number; break;
      case 43: out->pad_id = number; break;
      default: break;
    }
  }
}

void ReadNormalizer(Bytes message, const std::string& file, SentencePieceFile* out) {
  MessageReader reader(message, file);
  for (Field field; reader.Next(&field);) {
    if (field.number == 2 && field.wire == MessageReader::kBytes) {
      out->charsmap.assign(field.bytes.data, field.bytes.data + field.bytes.size);
    }
    if (field.wire != MessageReader::kVarint) continue;
    if (field.number == 3) out->add_dummy_prefix = field.value != 0;
    if (field.number == 4) out->remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) out->escape_whitespaces = field.value != 0;
  }
}

}  // namespace

SentencePieceFile ParseSentencePiece(const uint8_t* bytes, size_t size, const std::string& name) {
  SentencePieceFile file;
  MessageReader reader({bytes, size}, name);
  for (Field field; reader.Next(&field);) {
    if (field.wire != MessageReader::kBytes) continue;
    if (field.number == 1) file.pieces.push_back(ReadPiece(field.bytes, name));
    if (field.number == 2) ReadTrainer(field.bytes, name, &file);
    if (field.number == 3) ReadNormalizer(field.bytes, name, &file);
  }
  if (file.pieces.empty()) reader.Fail("has no pieces");
  return file;
}

SentencePieceFile ReadSentencePieceFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw TokenizerError(path.string() + ": cannot be opened");
  std::string text;
  if (!AppendRest(&file, &text)) throw TokenizerError(path.string() + ": cannot be read");
  // Llama 3's file of this name: a token in base64 and its rank in each line.
  if (text.substr(0, 64).find(" 0\n") != std::string::npos) {
    throw TokenizerError(path.string() +
                         ": a tiktoken file, which does not say how text is split: put the "
                         "model's tokenizer.json beside it");
  }
  return ParseSentencePiece(reinterpret_cast<const uint8_t*>(text.data()), text.size(),
                            path.filename().string());
}

}  // namespace arn::convert
