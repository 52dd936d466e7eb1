// GGUF, versions 2 and 3, little endian
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): magic, counts, metadata, tensor
// infos, then the tensors' bytes. The bytes are untrusted: every count, length, offset and type is
// checked before it is used.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "converter/source_tensor.h"
#include "nlohmann/json.hpp"
#include "platform/base/span.h"

namespace arn::convert {

struct GgufContents {
  // One object: numbers, booleans, strings (any bytes) and lists of them.
  nlohmann::json metadata = nlohmann::json::object();
  // In the order of the file. Shapes are written slowest first, as everywhere else here (the file
  // has them fastest first); offsets count from the file's start.
  std::vector<SourceTensor> tensors;
};

// `label` names the file in errors. Throws ConvertError that names the file, the key or tensor, and
// the value.
GgufContents ParseGguf(Span<const std::byte> bytes, const std::string& label);

}  // namespace arn::convert
