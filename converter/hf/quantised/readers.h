// The readers of the methods, by file: each replaces the stored tensors of its method.
#pragma once

namespace arn::convert {

class StoredParts;

void ReadAwq(StoredParts* parts);
void ReadBitNet(StoredParts* parts);
void ReadBitsAndBytes(StoredParts* parts);
void ReadCompressedTensors(StoredParts* parts);
void ReadFineGrainedFp8(StoredParts* parts);
void ReadGptq(StoredParts* parts);
void ReadHqq(StoredParts* parts);
void ReadMxfp4Experts(StoredParts* parts);

}  // namespace arn::convert
