// gpt-oss's experts (quant_method mxfp4): of each row of [experts, outputs, inputs], blocks of 32
// 4-bit floats in 16 bytes, the first of each pair in the low half, and a power of two. As
// convert_moe_packed_tensors of transformers 5.12 (integrations/mxfp4.py): value * 2^(scale - 127)
// in float32, which bfloat16, its default, holds exactly but for subnormal numbers. It exchanges
// outputs and inputs afterwards; here the rows stay as they are.
#include "converter/hf/quantised/readers.h"
#include "converter/hf/quantised/stored_parts.h"

namespace arn::convert {

void ReadMxfp4Experts(StoredParts* parts) {
  parts->RefuseOtherKeys({"dequantize", "modules_to_not_convert", "quant_method"});
  for (const std::string& name : parts->NamesBefore("_blocks")) {
    const std::string blocks_name = name + "_blocks", scales_name = name + "_scales";
    const Checkpoint::Entry& blocks = *parts->Find(blocks_name);
    const Checkpoint::Entry& scales = parts->Need(scales_name, blocks_name);
    CheckType(blocks, {"U8"});
    CheckType(scales, {"U8"});
    const std::vector<uint64_t>& shape = blocks.tensor->shape;
    if (shape.size() != 4 || shape[3] != 16 || blocks.tensor->elements() == 0) {
      FailPart(blocks, "expected shape [experts, rows, blocks, 16], found " + ShapeText(shape));
    }
    CheckShape(scales, {shape[0], shape[1], shape[2]});
    QuantisedGrid matrix;
    matrix.codes.stored = blocks;
    matrix.codes.bits = 4;
    matrix.codes.rows = shape[0] * shape[1];
    matrix.codes.cols = shape[2] * 32;
    matrix.values = Fp4E2m1Codes();
    matrix.scales.stored = scales;
    matrix.scales.cols = shape[2];
    matrix.scales.matrix_rows = matrix.scales.scale_rows = matrix.codes.rows;
    matrix.group_cols = 32;
    parts->Add(name, {shape[0], shape[1], matrix.codes.cols}, std::move(matrix),
               {blocks_name, scales_name});
  }
}

}  // namespace arn::convert
