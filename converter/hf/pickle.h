// Reads the pickles that torch.save writes: dictionaries of tensors, in protocol 2. Nothing that a
// pickle names is run: of its globals, those that rebuild tensors from storages are known, and
// every other is refused. Opcodes: CPython's Lib/pickletools.py; what torch puts into them:
// torch/serialization.py and torch/_utils.py. The input is untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "converter/base/error.h"

namespace arn::convert {

struct PickledStorage {
  std::string_view key;
  const char* dtype = nullptr;  // as safetensors has it; null: bytes
  uint64_t elements = 0;
};

// A view of a storage.
struct PickledTensor {
  uint32_t storage = 0;  // index
  const char* dtype = nullptr;
  uint64_t offset = 0;  // elements
  std::vector<uint64_t> shape, strides;
};

struct PickledValue {
  enum class Kind : uint8_t {
    kOther,  // None, a float
    kBool,
    kInt,
    kLong,  // of more than 8 bytes, which are `text`
    kText,
    kGlobal,  // `number` is its row in a table
    kTuple,
    kList,
    kDict,
    kStorage,  // `number` is its index
    kTensor,   // `number` is its index
  };
  Kind kind = Kind::kOther;
  int64_t number = 0;
  std::string_view text;
  std::vector<uint32_t> items;  // indices; of a dictionary: keys and values in turn
};

struct Pickle {
  std::vector<PickledValue> values;
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;
  uint32_t top = 0;  // the value of the pickle
  size_t bytes = 0;  // its length
};

// Thrown if the bytes end within a pickle.
class PickleEnded : public ConvertError {
 public:
  using ConvertError::ConvertError;
};

// Reads the pickle at the start of `bytes`, which must outlive the result. `label` names the file
// in errors. Throws ConvertError with the place, and the global that is not known.
Pickle ReadPickle(std::string_view bytes, const std::string& label);

}  // namespace arn::convert
