#include "tests/support/tiny_adapter.h"

#include <cstddef>
#include <cstring>
#include <random>

#include "flatbuffers/flatbuffers.h"
#include "kernels/contract/adapter.h"
#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "platform/base/layout.h"
#include "runtime/bundle/bundle.h"

namespace arn::test {
namespace {

bool IsAdapted(const std::string& name) {
  for (const char* end : {".qkv", ".attention_out", ".gate_up", ".down"}) {
    const size_t n = std::strlen(end);
    if (name.size() > n && name.compare(name.size() - n, n, end) == 0) return true;
  }
  return false;
}

// Appends outputs x inputs random values as panels.
void AppendRandomPanels(uint32_t outputs, uint32_t inputs, bool is_f32, std::mt19937_64* random,
                        std::vector<uint8_t>* data) {
  const DType dtype = is_f32 ? DType::kF32 : DType::kF16;
  const size_t element = is_f32 ? sizeof(float) : sizeof(uint16_t), begin = data->size();
  data->resize(begin + LowRankBytes(dtype, outputs, inputs));
  for (uint32_t r = 0; r < outputs; ++r) {
    for (uint32_t c = 0; c < inputs; ++c) {
      const float value = static_cast<float>((*random)() >> 40) * 0x1p-24f - 0.5f;
      const uint16_t half = F16FromF32(value);
      const size_t at =
          (size_t{r / kLowRankColumns} * inputs + c) * kLowRankColumns + r % kLowRankColumns;
      std::memcpy(data->data() + begin + at * element,
                  is_f32 ? static_cast<const void*>(&value) : &half, element);
    }
  }
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
    change.dtype = options.is_f32 ? fbs::DType::F32 : fbs::DType::F16;
    AppendRandomPanels(change.rank, change.cols, options.is_f32, &random, &change.data);
    const uint32_t half = change.rows / 2;
    change.blocks = {fbs::LowRankBlock(0, half, 0, options.rank),
                     fbs::LowRankBlock(half, change.rows - half, options.rank, options.rank)};
    for (const fbs::LowRankBlock& block : change.blocks) {
      AppendRandomPanels(block.n_rows(), block.rank(), options.is_f32, &random, &change.data);
    }
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
