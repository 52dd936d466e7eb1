#include "tests/support/tiny_adapter.h"

#include <cstddef>
#include <cstring>
#include <random>

#include "flatbuffers/flatbuffers.h"
#include "kernels/contract/adapter.h"
#include "kernels/pack/low_rank.h"
#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "platform/base/layout.h"
#include "runtime/bundle/bundle.h"

namespace arn::test {
namespace {

bool IsAdapted(const std::string& name) {
  if (name.rfind("mtp.", 0) == 0) return false;
  for (const char* end : {".qkv", ".attention_out", ".gate_up", ".down"}) {
    const size_t n = std::strlen(end);
    if (name.size() > n && name.compare(name.size() - n, n, end) == 0) return true;
  }
  return false;
}

std::vector<float> RandomMatrix(uint32_t outputs, uint32_t inputs, std::mt19937_64* random) {
  std::vector<float> values(size_t{outputs} * inputs);
  for (float& value : values) value = static_cast<float>((*random)() >> 40) * 0x1p-24f - 0.5f;
  return values;
}

// Appends random values of a change.
void AppendRandomChange(DType dtype, std::mt19937_64* random, TinyChange* change) {
  std::vector<float> values = RandomMatrix(change->rank, change->cols, random);
  const auto grown = [change](uint64_t bytes) {
    const size_t begin = change->data.size();
    change->data.resize(begin + bytes);
    return reinterpret_cast<std::byte*>(change->data.data() + begin);
  };
  PackLowRankA(dtype, values.data(), change->rank, change->cols,
               grown(LowRankABytes(dtype, change->rank, change->cols)));
  for (const fbs::LowRankBlock& block : change->blocks) {
    values = RandomMatrix(block.n_rows(), block.rank(), random);
    PackLowRankB(dtype, values.data(), block.n_rows(), block.rank(),
                 grown(LowRankBBytes(dtype, block.n_rows(), block.rank())));
  }
}

fbs::DType StoredType(DType dtype) {
  return dtype == DType::kInt8   ? fbs::DType::Int8
         : dtype == DType::kInt4 ? fbs::DType::Int4
         : dtype == DType::kF32  ? fbs::DType::F32
                                 : fbs::DType::F16;
}

}  // namespace

std::vector<uint8_t> MakeTinyAdapter(const BundleBytes& base, const TinyAdapter& options) {
  Bundle bundle;
  Diag diag;
  EXPECT_EQ(Status::kOk, OpenBundle({reinterpret_cast<const std::byte*>(base.data()), base.size()},
                                    &bundle, &diag))
      << diag.text();
  BundleHeader header;
  std::memcpy(&header, base.data(), sizeof header);
  const fbs::Bundle& index = *bundle.index;
  const uint64_t hash =
      index.prefix() != nullptr ? index.prefix()->model_hash() : header.index_hash;
  std::mt19937_64 random(options.seed);
  std::vector<TinyChange> changes;
  for (uint32_t i = 0; i < index.model()->tensors()->size(); ++i) {
    const fbs::Tensor& tensor = *index.model()->tensors()->Get(i);
    if (!IsAdapted(tensor.name()->str())) continue;
    TinyChange change;
    change.tensor = i;
    change.rows = tensor.rows();
    change.cols = tensor.cols();
    change.rank = 2 * options.rank;
    change.dtype = StoredType(options.dtype);
    const uint32_t half = change.rows / 2;
    change.blocks = {fbs::LowRankBlock(0, half, 0, options.rank),
                     fbs::LowRankBlock(half, change.rows - half, options.rank, options.rank)};
    AppendRandomChange(options.dtype, &random, &change);
    changes.push_back(change);
  }
  if (options.edit) options.edit(&changes);

  flatbuffers::FlatBufferBuilder builder;
  std::vector<uint8_t> segments;
  std::vector<flatbuffers::Offset<fbs::LowRank>> tables;
  for (const TinyChange& change : changes) {
    const size_t offset = AlignUp(segments.size(), kSliceAlign);
    segments.resize(offset);
    segments.insert(segments.end(), change.data.begin(), change.data.end());
    const fbs::Segment segment(offset, change.data.size(),
                               Xxh64(change.data.data(), change.data.size()));
    const auto blocks = builder.CreateVectorOfStructs(change.blocks);
    tables.push_back(fbs::CreateLowRank(builder, change.tensor, change.rows, change.cols,
                                        change.dtype, change.rank, blocks, &segment));
  }
  const auto name = builder.CreateString("tiny");
  const auto list = builder.CreateVector(tables);
  const auto adapter = fbs::CreateAdapter(builder, hash + options.hash_change, name, name, list);
  fbs::BundleBuilder root(builder);
  root.add_adapter(adapter);
  fbs::FinishBundleBuffer(builder, root.Finish());

  BundleHeader own = header;
  own.segments_offset = kRegionAlign;
  own.segments_bytes = AlignUp(segments.size() + kOverreadBytes, kSliceAlign);
  own.index_offset = own.segments_offset + own.segments_bytes;
  own.index_bytes = builder.GetSize();
  std::vector<uint8_t> file(own.index_offset + own.index_bytes);
  std::memcpy(file.data(), &own, sizeof own);
  std::memcpy(file.data() + own.segments_offset, segments.data(), segments.size());
  std::memcpy(file.data() + own.index_offset, builder.GetBufferPointer(), builder.GetSize());
  RepairHashes(file.data(), file.size());
  return file;
}

}  // namespace arn::test
