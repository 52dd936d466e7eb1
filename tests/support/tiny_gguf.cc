#include "tests/support/tiny_gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "platform/base/arith.h"

namespace arn::test {
namespace {

template <typename T>
void Put(T value, std::vector<uint8_t>* out) {
  const size_t at = out->size();
  out->resize(at + sizeof value);
  std::memcpy(out->data() + at, &value, sizeof value);
}

void PutText(const std::string& text, std::vector<uint8_t>* out) {
  Put<uint64_t>(text.size(), out);
  out->insert(out->end(), text.begin(), text.end());
}

template <typename T>
std::vector<uint8_t> Bytes(T value) {
  std::vector<uint8_t> out;
  Put(value, &out);
  return out;
}

constexpr uint32_t kArray = 9;

std::vector<uint8_t> ArrayHead(uint32_t type, size_t count) {
  std::vector<uint8_t> out = Bytes(type);
  Put<uint64_t>(count, &out);
  return out;
}

}  // namespace

void GgufWriter::Raw(const std::string& key, uint32_t type, const std::vector<uint8_t>& bytes) {
  Entry entry = {key, Bytes(type)};
  entry.value.insert(entry.value.end(), bytes.begin(), bytes.end());
  entries_.push_back(entry);
}

std::vector<std::string> GgufWriter::keys() const {
  std::vector<std::string> keys;
  for (const Entry& entry : entries_) keys.push_back(entry.key);
  return keys;
}

void GgufWriter::Drop(const std::string& key) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
}

void GgufWriter::Uint(const std::string& key, uint32_t value) { Raw(key, 4, Bytes(value)); }
void GgufWriter::Int(const std::string& key, int32_t value) { Raw(key, 5, Bytes(value)); }
void GgufWriter::Float(const std::string& key, float value) { Raw(key, 6, Bytes(value)); }
void GgufWriter::Bool(const std::string& key, bool value) {
  Raw(key, 7, Bytes<uint8_t>(value ? 1 : 0));
}
void GgufWriter::String(const std::string& key, const std::string& value) {
  std::vector<uint8_t> bytes;
  PutText(value, &bytes);
  Raw(key, 8, bytes);
}

void GgufWriter::Strings(const std::string& key, const std::vector<std::string>& values) {
  std::vector<uint8_t> bytes = ArrayHead(8, values.size());
  for (const std::string& value : values) PutText(value, &bytes);
  Raw(key, kArray, bytes);
}
void GgufWriter::Ints(const std::string& key, const std::vector<int32_t>& values) {
  std::vector<uint8_t> bytes = ArrayHead(5, values.size());
  for (const int32_t value : values) Put(value, &bytes);
  Raw(key, kArray, bytes);
}
void GgufWriter::Floats(const std::string& key, const std::vector<float>& values) {
  std::vector<uint8_t> bytes = ArrayHead(6, values.size());
  for (const float value : values) Put(value, &bytes);
  Raw(key, kArray, bytes);
}
void GgufWriter::Bools(const std::string& key, const std::vector<bool>& values) {
  std::vector<uint8_t> bytes = ArrayHead(7, values.size());
  for (const bool value : values) Put<uint8_t>(value ? 1 : 0, &bytes);
  Raw(key, kArray, bytes);
}

void GgufWriter::Tensor(const std::string& name, uint32_t type, const std::vector<uint64_t>& shape,
                        const std::vector<uint8_t>& bytes) {
  tensors_.push_back({name, type, shape, bytes});
}

std::vector<uint8_t> GgufWriter::EncodeHead(uint64_t* bytes) const {
  std::vector<uint8_t> file = {'G', 'G', 'U', 'F'};
  Put(version, &file);
  Put<uint64_t>(tensors_.size(), &file);
  const bool has_alignment = alignment != 32;
  Put<uint64_t>(entries_.size() + (has_alignment ? 1 : 0), &file);
  for (const Entry& entry : entries_) {
    PutText(entry.key, &file);
    file.insert(file.end(), entry.value.begin(), entry.value.end());
  }
  if (has_alignment) {
    PutText("general.alignment", &file);
    Put<uint32_t>(4, &file);
    Put<uint32_t>(static_cast<uint32_t>(alignment), &file);
  }
  uint64_t offset = 0;
  for (const TensorEntry& tensor : tensors_) {
    PutText(tensor.name, &file);
    Put<uint32_t>(static_cast<uint32_t>(tensor.shape.size()), &file);
    for (size_t i = tensor.shape.size(); i-- > 0;) Put<uint64_t>(tensor.shape[i], &file);
    Put(tensor.type, &file);
    Put(offset, &file);
    offset = AlignUp(offset + tensor.bytes.size(), alignment);
  }
  *bytes = AlignUp(file.size(), alignment) + offset;
  return file;
}

std::vector<uint8_t> GgufWriter::Encode() const {
  uint64_t bytes = 0;
  std::vector<uint8_t> file = EncodeHead(&bytes);
  for (const TensorEntry& tensor : tensors_) {
    file.resize(AlignUp(file.size(), alignment));
    file.insert(file.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  return file;
}

std::vector<uint8_t> EncodeQ4_0(const std::vector<float>& values) {
  std::vector<uint8_t> out;
  for (size_t block = 0; block + 32 <= values.size(); block += 32) {
    const float* x = values.data() + block;
    float extreme = 0;
    for (size_t i = 0; i < 32; ++i) {
      if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    }
    const float scale = extreme / -8;
    const float inverse = scale == 0 ? 0 : 1 / scale;
    Put(F16FromF32(scale), &out);
    const auto level = [&](size_t i) {
      return static_cast<uint8_t>(std::min(15.0f, std::trunc(x[i] * inverse + 8.5f)));
    };
    for (size_t i = 0; i < 16; ++i) {
      out.push_back(static_cast<uint8_t>(level(i) | level(i + 16) << 4));
    }
  }
  return out;
}

std::vector<uint8_t> EncodeQ8_0(const std::vector<float>& values) {
  std::vector<uint8_t> out;
  for (size_t block = 0; block + 32 <= values.size(); block += 32) {
    const float* x = values.data() + block;
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float scale = largest / 127;
    const float inverse = scale == 0 ? 0 : 1 / scale;
    Put(F16FromF32(scale), &out);
    for (size_t i = 0; i < 32; ++i) {
      Put(static_cast<int8_t>(std::round(x[i] * inverse)), &out);
    }
  }
  return out;
}

}  // namespace arn::test
