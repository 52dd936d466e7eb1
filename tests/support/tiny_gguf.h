// Builds GGUF files in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arn::test {

// Element type numbers of enum ggml_type.
inline constexpr uint32_t kGgufF32 = 0, kGgufF16 = 1, kGgufQ4_0 = 2, kGgufQ8_0 = 8, kGgufBf16 = 30,
                          kGgufTq2_0 = 35;

class GgufWriter {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;  // written as general.alignment unless 32

  // Adds metadata in call order.
  void Uint(const std::string& key, uint32_t value);
  void Int(const std::string& key, int32_t value);
  void Float(const std::string& key, float value);
  void Bool(const std::string& key, bool value);
  void String(const std::string& key, const std::string& value);
  void Strings(const std::string& key, const std::vector<std::string>& values);
  void Ints(const std::string& key, const std::vector<int32_t>& values);
  void Floats(const std::string& key, const std::vector<float>& values);
  void Bools(const std::string& key, const std::vector<bool>& values);
  // Adds a key with arbitrary value bytes.
  void Raw(const std::string& key, uint32_t type, const std::vector<uint8_t>& bytes);

  // `shape` starts with the slowest dimension; `bytes` are in the encoding of `type`.
  void Tensor(const std::string& name, uint32_t type, const std::vector<uint64_t>& shape,
              const std::vector<uint8_t>& bytes);

  // The keys, in their order.
  std::vector<std::string> keys() const;
  // Leaves a key out.
  void Drop(const std::string& key);

  // Returns the whole file.
  std::vector<uint8_t> Encode() const;
  // Returns what stands before the tensors' bytes, and sets the size of the whole file.
  std::vector<uint8_t> EncodeHead(uint64_t* bytes) const;

 private:
  struct Entry {
    std::string key;
    std::vector<uint8_t> value;  // its type and bytes
  };
  struct TensorEntry {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> shape;
    std::vector<uint8_t> bytes;
  };
  std::vector<Entry> entries_;
  std::vector<TensorEntry> tensors_;
};

// Encodes floats as Q4_0 and Q8_0 blocks, as ggml's quantize_row_*_ref do. REQUIRES: a multiple of
// 32 values.
std::vector<uint8_t> EncodeQ4_0(const std::vector<float>& values);
std::vector<uint8_t> EncodeQ8_0(const std::vector<float>& values);

}  // namespace arn::test
