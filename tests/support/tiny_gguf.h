// GGUF files made in memory, for tests that must not depend on files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arn::test {

// The numbers of element types (enum ggml_type).
inline constexpr uint32_t kGgufF32 = 0, kGgufF16 = 1, kGgufQ4_0 = 2, kGgufQ8_0 = 8, kGgufBf16 = 30;

class GgufWriter {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;  // written as general.alignment unless it is 32

  // Metadata, in the order of the calls.
  void Uint(const std::string& key, uint32_t value);
  void Int(const std::string& key, int32_t value);
  void Float(const std::string& key, float value);
  void Bool(const std::string& key, bool value);
  void String(const std::string& key, const std::string& value);
  void Strings(const std::string& key, const std::vector<std::string>& values);
  void Ints(const std::string& key, const std::vector<int32_t>& values);
  void Floats(const std::string& key, const std::vector<float>& values);
  void Bools(const std::string& key, const std::vector<bool>& values);
  // A key with a value of any bytes.
  void Raw(const std::string& key, uint32_t type, const std::vector<uint8_t>& bytes);

  // `shape`: slowest first; `bytes` of that type.
  void Tensor(const std::string& name, uint32_t type, const std::vector<uint64_t>& shape,
              const std::vector<uint8_t>& bytes);

  // The whole file.
  std::vector<uint8_t> Encode() const;

 private:
  struct TensorEntry {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> shape;
    std::vector<uint8_t> bytes;
  };
  std::vector<uint8_t> keys_;
  uint64_t n_keys_ = 0;
  std::vector<TensorEntry> tensors_;
};

// Rows of floats as blocks of Q4_0 and Q8_0, as ggml's quantize_row_*_ref makes them. The count is
// a multiple of 32.
std::vector<uint8_t> EncodeQ4_0(const std::vector<float>& values);
std::vector<uint8_t> EncodeQ8_0(const std::vector<float>& values);

}  // namespace arn::test
