#include "converter/convert/adapter.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "converter/base/error.h"
#include "converter/hf/lora.h"
#include "converter/write/bundle_writer.h"
#include "kernels/contract/adapter.h"
#include "kernels/pack/low_rank.h"
#include "platform/base/arith.h"
#include "runtime/bundle/bundle.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

// A tensor of the base.
struct BaseTensor {
  uint32_t index = 0, rows = 0, cols = 0;
  bool is_integer = false;
};
struct BaseIndex {
  uint64_t hash = 0;
  uint32_t hidden = 0, n_layers = 0;
  std::map<std::string, BaseTensor> tensors;
};

BaseIndex ReadBase(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Fail("%s: cannot open", path.c_str());
  const uint64_t bytes = fs::file_size(path);
  // Aligned as OpenBundle requires.
  std::vector<uint64_t> words(CeilDiv(bytes, sizeof(uint64_t)) + 8);
  auto* data = reinterpret_cast<std::byte*>(
      AlignUp(reinterpret_cast<uintptr_t>(words.data()), kSmallSegmentAlign));
  file.read(reinterpret_cast<char*>(data), static_cast<std::streamsize>(bytes));
  if (!file) Fail("%s: cannot read", path.c_str());
  Bundle bundle;
  Diag diag;
  if (OpenBundle({data, static_cast<size_t>(bytes)}, &bundle, &diag) != Status::kOk) {
    Fail("%s: %s", path.c_str(), diag.text());
  }
  const fbs::Bundle& index = *bundle.index;
  if (index.model() == nullptr || index.model()->tensors() == nullptr) {
    Fail("%s: the base is a bundle without a model", path.c_str());
  }
  BaseIndex base;
  BundleHeader header;
  std::memcpy(&header, data, sizeof header);
  base.hash = index.prefix() != nullptr      ? index.prefix()->model_hash()
              : index.self_test() != nullptr ? index.self_test()->model_hash()
                                             : header.index_hash;
  base.hidden = index.model()->hidden();
  base.n_layers = index.model()->layers() == nullptr ? 0 : index.model()->layers()->size();
  uint32_t i = 0;
  for (const fbs::Tensor* tensor : *index.model()->tensors()) {
    const bool is_integer =
        tensor->dtype() == fbs::DType::Int8 || tensor->dtype() == fbs::DType::Int4;
    base.tensors[tensor->name()->str()] = {i++, tensor->rows(), tensor->cols(), is_integer};
  }
  return base;
}

// The change of one tensor of the bundle, row-major.
struct Change {
  const PlannedTensor* tensor = nullptr;
  BaseTensor base;
  std::vector<float> a;  // [rank, cols]
  std::vector<fbs::LowRankBlock> blocks;
  std::vector<std::vector<float>> b;  // of each block: [n_rows, rank]

  uint32_t rank() const { return static_cast<uint32_t>(a.size() / tensor->cols); }
};

class ChangeMaker {
 public:
  ChangeMaker(const TensorPlan& plan, const Lora& lora, const BaseIndex& base,
              const AdapterOptions& options)
      : plan_(plan), base_(base), options_(options) {
    for (const auto& [module, matrix] : lora.matrices()) modules_[&matrix] = module;
  }

  std::vector<Change> Make() {
    std::vector<Change> changes;
    for (size_t i = 0; i < plan_.tensors.size(); ++i) {
      const PlannedTensor& tensor = plan_.tensors[i];
      bool is_changed = false;
      for (const SourcePart& part : tensor.parts) {
        if (part.weight == nullptr || part.weight->added == nullptr) continue;
        is_changed = true;
        used_.insert(part.weight->added);
        if (i == plan_.embedding || i == plan_.head || IsNoMatrix(tensor, part)) {
          Fail(
              "%s: module %s becomes tensor %s, which adapters cannot change at run time; --merge "
              "can",
              options_.checkpoint.lora.c_str(), NameOf(part).c_str(), tensor.name.c_str());
        }
      }
      if (is_changed) changes.push_back(Of(tensor));
    }
    for (const auto& [matrix, module] : modules_) {
      if (used_.count(matrix) != 0) continue;
      Fail("%s: module %s is in no matrix of the bundle", options_.checkpoint.lora.c_str(),
           module.c_str());
    }
    return changes;
  }

 private:
  static bool IsNoMatrix(const PlannedTensor& tensor, const SourcePart& part) {
    return tensor.is_vector || part.taps != 0 || part.first_element != 0 || part.is_negative_log;
  }

  const std::string& NameOf(const SourcePart& part) const {
    return modules_.at(part.weight->added);
  }

  Change Of(const PlannedTensor& tensor) const {
    Change change;
    change.tensor = &tensor;
    const auto found = base_.tensors.find(tensor.name);
    if (found == base_.tensors.end() || found->second.rows != tensor.rows ||
        found->second.cols != tensor.cols) {
      Fail("%s: the base's tensor %s is %s, the checkpoint's is [%u, %u]", options_.base.c_str(),
           tensor.name.c_str(),
           found == base_.tensors.end()
               ? "missing"
               : Format("[%u, %u]", found->second.rows, found->second.cols).c_str(),
           tensor.rows, tensor.cols);
    }
    change.base = found->second;
    std::map<const LowRank*, uint32_t> first_ranks;
    const LowRank* last = nullptr;
    uint32_t row = 0;
    for (const SourcePart& part : tensor.parts) {
      const LowRank* added = part.weight == nullptr ? nullptr : part.weight->added;
      if (added != nullptr) {
        if (first_ranks.count(added) == 0) {
          first_ranks[added] = change.rank();
          AppendA(*added, part, tensor.cols, &change.a);
        }
        if (added != last) {
          change.blocks.emplace_back(row, 0, first_ranks[added], added->rank);
          change.b.emplace_back();
        }
        AppendB(*added, part, &change.b.back());
        fbs::LowRankBlock& block = change.blocks.back();
        block = fbs::LowRankBlock(block.first_row(), block.n_rows() + part.rows, block.first_rank(),
                                  block.rank());
      }
      last = added;
      row += part.rows;
    }
    return change;
  }

  // A stored matrix [rows, cols] is left times right; a transposed one is [cols, rows].
  static void AppendA(const LowRank& added, const SourcePart& part, uint32_t cols,
                      std::vector<float>* a) {
    for (uint32_t k = 0; k < added.rank; ++k) {
      for (uint32_t c = 0; c < cols; ++c) {
        a->push_back(part.transposed_rows == 0
                         ? added.right[k * added.cols + part.SourceColumn(c)]
                         : added.left[uint64_t{part.SourceColumn(c)} * added.rank + k]);
      }
    }
  }
  static void AppendB(const LowRank& added, const SourcePart& part, std::vector<float>* b) {
    const float factor = part.factor * part.input_factor;
    for (uint32_t r = 0; r < part.rows; ++r) {
      const uint64_t row = part.SourceRow(r);
      for (uint32_t k = 0; k < added.rank; ++k) {
        b->push_back(factor * (part.transposed_rows == 0 ? added.left[row * added.rank + k]
                                                         : added.right[k * added.cols + row]));
      }
    }
  }

  const TensorPlan& plan_;
  const BaseIndex& base_;
  const AdapterOptions& options_;
  std::map<const LowRank*, std::string> modules_;
  std::set<const LowRank*> used_;
};

void CheckFinite(const std::vector<float>& matrix, DType dtype, const std::string& name) {
  for (const float value : matrix) {
    const float stored = dtype == DType::kF16 ? F32FromF16(F16FromF32(value)) : value;
    if (std::isfinite(stored)) continue;
    Fail("tensor %s: the adapter's value %g is not finite in %s", name.c_str(),
         static_cast<double>(value), DTypeName(dtype));
  }
}

// Moves factors from the columns of B to the rows of A, so that all columns have the same largest
// value: those that share a scale of integers are then as exact as they matter.
void BalanceRanks(Change* change) {
  const uint32_t rank = change->rank(), cols = change->tensor->cols;
  std::vector<float> largest(rank);
  const auto for_each = [&](const auto& visit) {
    for (size_t i = 0; i < change->b.size(); ++i) {
      const fbs::LowRankBlock& block = change->blocks[i];
      for (size_t j = 0; j < change->b[i].size(); ++j) {
        visit(block.first_rank() + j % block.rank(), &change->b[i][j]);
      }
    }
  };
  for_each([&](size_t k, const float* b) { largest[k] = Max(largest[k], std::abs(*b)); });
  for (float& factor : largest) factor = factor > 0.0f ? factor : 1.0f;
  for_each([&](size_t k, float* b) { *b /= largest[k]; });
  for (uint32_t k = 0; k < rank; ++k) {
    for (uint32_t c = 0; c < cols; ++c) change->a[uint64_t{k} * cols + c] *= largest[k];
  }
}

// Returns A and the Bs as they are stored.
std::vector<std::byte> Pack(const Change& change, DType dtype) {
  const std::string& name = change.tensor->name;
  CheckFinite(change.a, dtype, name);
  const uint32_t rank = change.rank(), cols = change.tensor->cols;
  std::vector<std::byte> data(LowRankABytes(dtype, rank, cols));
  PackLowRankA(dtype, change.a.data(), rank, cols, data.data());
  for (size_t i = 0; i < change.b.size(); ++i) {
    const fbs::LowRankBlock& block = change.blocks[i];
    CheckFinite(change.b[i], dtype, name);
    const size_t begin = data.size();
    data.resize(begin + LowRankBBytes(dtype, block.n_rows(), block.rank()));
    PackLowRankB(dtype, change.b[i].data(), block.n_rows(), block.rank(), data.data() + begin);
  }
  return data;
}

fbs::DType StoredType(DType dtype) {
  if (dtype == DType::kInt8) return fbs::DType::Int8;
  if (dtype == DType::kInt4) return fbs::DType::Int4;
  return dtype == DType::kF16 ? fbs::DType::F16 : fbs::DType::F32;
}

using LowRankTables = std::vector<flatbuffers::Offset<fbs::LowRank>>;
using DirectionTables = std::vector<flatbuffers::Offset<fbs::Direction>>;

LowRankTables WriteChanges(const AdapterOptions& options, const BaseIndex& base,
                           BundleWriter* writer, flatbuffers::FlatBufferBuilder* builder,
                           AdapterResult* result) {
  LowRankTables tables;
  WithAdapterPlan(options.checkpoint, [&](const TensorPlan& plan, const Lora& lora) {
    for (Change& change : ChangeMaker(plan, lora, base, options).Make()) {
      const PlannedTensor& tensor = *change.tensor;
      const bool is_integer = IsIntegerLowRank(options.weights) && change.base.is_integer;
      const DType dtype =
          IsIntegerLowRank(options.weights) && !is_integer ? DType::kF16 : options.weights;
      if (is_integer) BalanceRanks(&change);
      const std::vector<std::byte> data = Pack(change, dtype);
      const fbs::Segment segment = writer->WriteSegment(data.data(), data.size());
      const auto blocks = builder->CreateVectorOfStructs(change.blocks);
      tables.push_back(fbs::CreateLowRank(*builder, change.base.index, tensor.rows, tensor.cols,
                                          StoredType(dtype), change.rank(), blocks, &segment));
      result->n_integer += is_integer ? 1 : 0;
      result->max_rank = Max(result->max_rank, change.rank());
    }
  });
  return tables;
}

DirectionTables WriteDirections(const AdapterOptions& options, const BaseIndex& base,
                                BundleWriter* writer, flatbuffers::FlatBufferBuilder* builder) {
  DirectionTables tables;
  const ControlVector& vector = *options.control_vector;
  for (const auto& [layer, direction] : vector.directions) {
    if (layer >= base.n_layers || direction.size() != base.hidden) {
      Fail("%s: direction.%u has %zu values, the base has %u layers of %u", vector.source.c_str(),
           layer, direction.size(), base.n_layers, base.hidden);
    }
    const fbs::Segment segment = writer->WriteSegment(
        reinterpret_cast<const std::byte*>(direction.data()), direction.size() * sizeof(float));
    tables.push_back(fbs::CreateDirection(*builder, layer, &segment));
  }
  return tables;
}

}  // namespace

AdapterResult ConvertAdapter(const AdapterOptions& options) {
  const BaseIndex base = ReadBase(options.base);
  BundleWriter writer(options.output);
  flatbuffers::FlatBufferBuilder builder;
  AdapterResult result;
  const bool steers = options.control_vector != nullptr;
  const auto tables =
      steers ? LowRankTables() : WriteChanges(options, base, &writer, &builder, &result);
  const auto rows = steers ? WriteDirections(options, base, &writer, &builder) : DirectionTables();
  result.n_directions = static_cast<uint32_t>(rows.size());
  result.n_changes = static_cast<uint32_t>(tables.size());
  const auto base_name = builder.CreateString(options.base.filename().string());
  const fs::path source = steers ? options.control_vector->source : options.checkpoint.lora;
  const auto name = builder.CreateString(fs::canonical(source).filename().string());
  const auto changes = builder.CreateVector(tables);
  const auto directions = builder.CreateVector(rows);
  const auto adapter = fbs::CreateAdapter(builder, base.hash, base_name, name, changes, directions);
  const auto producer = builder.CreateString("arenite-convert " ARN_CONVERT_VERSION);
  fbs::BundleBuilder bundle(builder);
  bundle.add_producer(producer);
  bundle.add_adapter(adapter);
  fbs::FinishBundleBuffer(builder, bundle.Finish());
  writer.Close(builder);
  if (options.signing_key != nullptr) writer.Sign(*options.signing_key);
  if (options.check) {
    writer.Flush();
    options.check(writer.path());
  }
  writer.Commit();
  result.file_bytes = writer.file_bytes();
  return result;
}

}  // namespace arn::convert
