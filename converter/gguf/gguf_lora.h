// Low-rank adapters in GGUF, as llama.cpp's convert_lora_to_gguf.py writes them: for a base that is
// a GGUF file, whose tensors they name.
#pragma once

#include <filesystem>
#include <string>

#include "converter/hf/lora.h"

namespace arn::convert {

// Reads adapter.lora.alpha and the pairs NAME.weight.lora_a [rank, inputs] and NAME.weight.lora_b
// [outputs, rank]. architecture: general.architecture of the base. scale: multiplies the whole
// adapter. Throws ConvertError, naming the key or tensor, for other kinds of adapters and for what
// is no linear layer.
Lora ReadGgufLora(const std::filesystem::path& path, const std::string& architecture, double scale);

}  // namespace arn::convert
