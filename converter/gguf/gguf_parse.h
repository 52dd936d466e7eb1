// Parses GGUF, versions 2 and 3, little endian
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): magic, counts, metadata, tensor
// infos, then the tensors' bytes. The input is untrusted: every count, length, offset and type is
// checked before use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "converter/base/source_tensor.h"
#include "nlohmann/json.hpp"
#include "platform/base/span.h"

namespace arn::convert {

struct GgufContents {
  // One object: numbers, booleans, strings (any bytes) and lists of them.
  nlohmann::json metadata = nlohmann::json::object();
  // In file order. Shapes are slowest dimension first, as elsewhere in the converter (the file
  // stores the fastest first); offsets are from the start of the file.
  std::vector<SourceTensor> tensors;
};

// `label` names the file in errors. Throws ConvertError with the file, the key or tensor, and the
// value.
GgufContents ParseGguf(Span<const std::byte> bytes, const std::string& label);

}  // namespace arn::convert
