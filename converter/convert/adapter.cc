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
#include "platform/base/arith.h"
#include "runtime/bundle/bundle.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

// A tensor of the base.
struct BaseTensor {
  uint32_t index = 0, rows = 0, cols = 0;
};
struct BaseIndex {
  uint64_t hash = 0;
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
  uint32_t i = 0;
  for (const fbs::Tensor* tensor : *index.model()->tensors()) {
    base.tensors[tensor->name()->str()] = {i++, tensor->rows(), tensor->cols()};
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
                         ? added.right[k * added.cols + c]
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

// Appends a matrix [outputs, inputs] as panels.
void AppendPanels(const std::vector<float>& matrix, uint32_t inputs, DType dtype,
                  const std::string& name, std::vector<std::byte>* to) {
  const auto outputs = static_cast<uint32_t>(matrix.size() / inputs);
  const size_t element = dtype == DType::kF16 ? sizeof(uint16_t) : sizeof(float);
  const size_t begin = to->size();
  to->resize(begin + LowRankBytes(dtype, outputs, inputs));
  for (uint32_t r = 0; r < outputs; ++r) {
    for (uint32_t c = 0; c < inputs; ++c) {
      const float value = matrix[uint64_t{r} * inputs + c];
      const uint16_t half = F16FromF32(value);
      if (!std::isfinite(dtype == DType::kF16 ? F32FromF16(half) : value)) {
        Fail("tensor %s: the adapter's value %g is not finite in %s", name.c_str(),
             static_cast<double>(value), DTypeName(dtype));
      }
      const uint64_t panel = uint64_t{r / kLowRankColumns} * inputs + c;
      std::byte* at =
          to->data() + begin + (panel * kLowRankColumns + r % kLowRankColumns) * element;
      std::memcpy(at, dtype == DType::kF16 ? static_cast<const void*>(&half) : &value, element);
    }
  }
}

}  // namespace

AdapterResult ConvertAdapter(const AdapterOptions& options) {
  const BaseIndex base = ReadBase(options.base);
  BundleWriter writer(options.output);
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fbs::LowRank>> tables;
  AdapterResult result;
  WithAdapterPlan(options.checkpoint, [&](const TensorPlan& plan, const Lora& lora) {
    for (const Change& change : ChangeMaker(plan, lora, base, options).Make()) {
      const PlannedTensor& tensor = *change.tensor;
      std::vector<std::byte> data;
      AppendPanels(change.a, tensor.cols, options.weights, tensor.name, &data);
      for (size_t i = 0; i < change.b.size(); ++i) {
        AppendPanels(change.b[i], change.blocks[i].rank(), options.weights, tensor.name, &data);
      }
      const fbs::Segment segment = writer.WriteSegment(data.data(), data.size());
      const auto blocks = builder.CreateVectorOfStructs(change.blocks);
      tables.push_back(
          fbs::CreateLowRank(builder, change.base.index, tensor.rows, tensor.cols,
                             options.weights == DType::kF16 ? fbs::DType::F16 : fbs::DType::F32,
                             change.rank(), blocks, &segment));
      result.max_rank = Max(result.max_rank, change.rank());
    }
  });
  result.n_changes = static_cast<uint32_t>(tables.size());
  const auto base_name = builder.CreateString(options.base.filename().string());
  const auto name =
      builder.CreateString(fs::canonical(options.checkpoint.lora).filename().string());
  const auto changes = builder.CreateVector(tables);
  const auto adapter = fbs::CreateAdapter(builder, base.hash, base_name, name, changes);
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
