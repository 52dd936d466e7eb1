#include "converter/hf/safetensors.h"

#include <algorithm>
#include <cinttypes>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "nlohmann/json.hpp"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

// Returns the bits of an element; 0 for an unknown type (its size is not checked, and its use is
// refused).
uint32_t ElementBits(const std::string& dtype) {
  struct Row {
    const char* name;
    uint32_t bits;
  };
  static constexpr Row kRows[] = {
      {"F64", 64}, {"F32", 32},    {"F16", 16},    {"BF16", 16},   {"I64", 64},
      {"I32", 32}, {"I16", 16},    {"I8", 8},      {"U64", 64},    {"U32", 32},
      {"U16", 16}, {"U8", 8},      {"BOOL", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8},
      {"C64", 64}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
  };
  for (const Row& row : kRows) {
    if (dtype == row.name) return row.bits;
  }
  return 0;
}

uint64_t UnsignedField(const nlohmann::json& value, const std::string& file,
                       const std::string& tensor, const char* field) {
  if (!value.is_number_unsigned()) {
    Fail("%s: tensor %s: %s: expected a whole number, found %s", file.c_str(), tensor.c_str(),
         field, Shown(value).c_str());
  }
  return value.get<uint64_t>();
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) { ReadHeader(); }

void SafetensorsFile::ReadHeader() {
  const std::string file = path().string();
  const uint64_t file_bytes = file_.bytes();
  if (file_bytes < 8) {
    Fail("%s: truncated: %" PRIu64 " bytes, a safetensors file begins with 8 of header length",
         file.c_str(), file_bytes);
  }
  uint64_t header_bytes = 0;
  file_.Read(0, &header_bytes, 8);
  if (header_bytes > kMaxHeaderBytes) {
    Fail("%s: the header length is %" PRIu64 ", more than the %" PRIu64
         " that are allowed "
         "(not a safetensors file?)",
         file.c_str(), header_bytes, kMaxHeaderBytes);
  }
  if (header_bytes > file_bytes - 8) {
    Fail("%s: truncated: the header has %" PRIu64 " bytes, the file %" PRIu64, file.c_str(),
         header_bytes, file_bytes);
  }
  std::string text(static_cast<size_t>(header_bytes), '\0');
  file_.Read(8, text.data(), text.size());
  const nlohmann::json header = ParseJson(text, file + " header");
  if (!header.is_object()) {
    Fail("%s: the header is not a JSON object: %s", file.c_str(), Shown(header).c_str());
  }

  const uint64_t data_begin = 8 + header_bytes;
  const uint64_t data_bytes = file_bytes - data_begin;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
      Fail("%s: tensor %s: expected {dtype, shape, data_offsets: [begin, end]}, found %s",
           file.c_str(), name.c_str(), Shown(entry).c_str());
    }
    SourceTensor tensor;
    tensor.name = name;
    tensor.dtype = entry["dtype"].get<std::string>();
    uint64_t elements = 1;
    for (const auto& d : entry["shape"]) {
      tensor.shape.push_back(UnsignedField(d, file, name, "shape"));
      if (!CheckedMul(elements, tensor.shape.back(), &elements)) {
        Fail("%s: tensor %s: the shape %s overflows", file.c_str(), name.c_str(),
             ShapeText(tensor.shape).c_str());
      }
    }
    const uint64_t begin = UnsignedField(entry["data_offsets"][0], file, name, "data_offsets");
    const uint64_t end = UnsignedField(entry["data_offsets"][1], file, name, "data_offsets");
    if (begin > end || end > data_bytes) {
      Fail("%s: tensor %s: data_offsets [%" PRIu64 ", %" PRIu64 "] exceed the %" PRIu64
           " bytes of data (truncated?)",
           file.c_str(), name.c_str(), begin, end, data_bytes);
    }
    tensor.offset = data_begin + begin;
    tensor.bytes = end - begin;
    const uint32_t bits = ElementBits(tensor.dtype);
    uint64_t total_bits = 0;
    if (bits != 0 && (!CheckedMul(elements, bits, &total_bits) || total_bits % 8 != 0 ||
                      total_bits / 8 != tensor.bytes)) {
      Fail("%s: tensor %s: %s %s does not fit its data_offsets, which hold %" PRIu64 " bytes",
           file.c_str(), name.c_str(), tensor.dtype.c_str(), ShapeText(tensor.shape).c_str(),
           tensor.bytes);
    }
    if (bits >= 8 && begin % (bits / 8) != 0) {
      Fail("%s: tensor %s: misaligned: data_offsets begin at %" PRIu64
           ", not a multiple of the %u bytes of %s",
           file.c_str(), name.c_str(), begin, bits / 8, tensor.dtype.c_str());
    }
    tensors_.push_back(std::move(tensor));
  }
  // Sorts by offset; at equal offsets, empty tensors first.
  std::sort(tensors_.begin(), tensors_.end(), [](const SourceTensor& a, const SourceTensor& b) {
    return a.offset != b.offset ? a.offset < b.offset
           : a.bytes != b.bytes ? a.bytes < b.bytes
                                : a.name < b.name;
  });
  CheckRanges(data_bytes);
}

void SafetensorsFile::CheckRanges(uint64_t data_bytes) const {
  const uint64_t data_begin = file_.bytes() - data_bytes;
  uint64_t expected = data_begin;
  const SourceTensor* before = nullptr;
  for (const SourceTensor& tensor : tensors_) {
    if (tensor.offset < expected) {
      Fail("%s: tensors %s and %s overlap", path().c_str(), before->name.c_str(),
           tensor.name.c_str());
    }
    if (tensor.offset > expected) {
      Fail("%s: %" PRIu64 " bytes before tensor %s belong to no tensor", path().c_str(),
           tensor.offset - expected, tensor.name.c_str());
    }
    expected = tensor.offset + tensor.bytes;
    before = &tensor;
  }
  if (expected != file_.bytes()) {
    Fail("%s: %" PRIu64 " bytes at the end belong to no tensor", path().c_str(),
         file_.bytes() - expected);
  }
}

}  // namespace arn::convert
