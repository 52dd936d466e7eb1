// Converts a LoRA adapter of PEFT, or control vectors, into a bundle of its own, for a base that is
// a bundle already.
#pragma once

#include <cstdint>
#include <filesystem>

#include "converter/convert/control_vector.h"
#include "converter/convert/convert.h"

namespace arn::convert {

struct AdapterOptions {
  // The base's checkpoint, and the adapter's folder and scale. The checkpoint says which matrices a
  // bundle joins, and where each comes from; its values are not read.
  ConvertOptions checkpoint;
  // Not null: control vectors instead, for which no checkpoint is read.
  const ControlVector* control_vector = nullptr;
  std::filesystem::path base;    // the bundle that the adapter is for
  std::filesystem::path output;  // the adapter's bundle
  DType weights = DType::kInt8;  // or kInt4, both f16 of matrices in floats; or kF16 or kF32
  BundleCheck check;             // empty: does not read the bundle back
  const SigningKey* signing_key = nullptr;
};

struct AdapterResult {
  uint64_t file_bytes = 0;
  uint32_t n_changes = 0;
  uint32_t n_integer = 0;  // of them in int8 or int4
  uint32_t max_rank = 0;
  uint32_t n_directions = 0;  // layers with a control vector
};

// Writes options.output. Throws ConvertError, and leaves no files behind, for what --merge refuses
// too, for modules that are no linear layers of the decoder, for a base that is not of this
// checkpoint, for values that overflow the type, and for control vectors of another width, or of
// layers that the base does not have.
AdapterResult ConvertAdapter(const AdapterOptions& options);

}  // namespace arn::convert
