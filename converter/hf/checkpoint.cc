#include "converter/hf/checkpoint.h"

#include <algorithm>
#include <cstring>

#include "converter/base/error.h"
#include "converter/gguf/block_formats.h"
#include "converter/hf/consolidated.h"
#include "converter/hf/json_file.h"
#include "converter/hf/lora.h"
#include "converter/hf/safetensors.h"
#include "converter/hf/torch_file.h"
#include "nlohmann/json.hpp"
#include "platform/base/arith.h"

namespace arn::convert {

namespace fs = std::filesystem;

namespace {

const nlohmann::json& WeightMap(const nlohmann::json& index, const fs::path& index_path) {
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    Fail("%s: weight_map: expected an object of tensor names and files", index_path.c_str());
  }
  return index["weight_map"];
}

}  // namespace

std::set<std::string> WeightFiles(const fs::path& folder, fs::path* index) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    if (fs::exists(folder / name)) return {name};
    const fs::path path = folder / (std::string(name) + ".index.json");
    if (!fs::exists(path)) continue;
    const nlohmann::json json = LoadJson(path);
    std::set<std::string> files;
    for (const auto& [tensor, file] : WeightMap(json, path).items()) {
      if (!file.is_string()) {
        Fail("%s: weight_map: %s: expected a file name, found %s", path.c_str(), tensor.c_str(),
             Shown(file).c_str());
      }
      const std::string text = file.get<std::string>();
      if (text.empty() || text.find('/') != std::string::npos || text == "." || text == "..") {
        Fail("%s: weight_map: %s: expected the name of a file beside it, found %s", path.c_str(),
             tensor.c_str(), Shown(file).c_str());
      }
      files.insert(text);
    }
    if (index != nullptr) *index = path;
    return files;
  }
  return ConsolidatedFiles(folder);
}

Checkpoint::Checkpoint(const fs::path& folder) {
  fs::path index;
  const std::set<std::string> files = WeightFiles(folder, &index);
  if (files.empty()) {
    Fail(
        "%s: the folder has neither model.safetensors nor model.safetensors.index.json, and no "
        "pytorch_model.bin or consolidated.00.pth",
        folder.c_str());
  }
  if (files.count(kFirstConsolidated) != 0) {
    AddAll(std::make_unique<ConsolidatedFile>(folder));
    return;
  }
  for (const std::string& file : files) Add(folder / file);
  if (!index.empty()) CheckIndex(index);
}

Checkpoint Checkpoint::OfFile(const fs::path& path) {
  Checkpoint checkpoint;
  checkpoint.Add(path);
  return checkpoint;
}

Checkpoint::Checkpoint(std::unique_ptr<TensorFile> file,
                       std::map<std::string, SourceTensor> tensors)
    : named_(std::move(tensors)) {
  for (const auto& [name, tensor] : named_) entries_[name] = {&tensor, file.get()};
  files_.push_back(std::move(file));
}

void Checkpoint::CheckIndex(const fs::path& index_path) const {
  const nlohmann::json index = LoadJson(index_path);
  for (const auto& [name, file] : WeightMap(index, index_path).items()) {
    const Entry* entry = Find(name);
    if (entry == nullptr || entry->file->path().filename() != file.get<std::string>()) {
      Fail("%s: weight_map puts tensor %s into %s, which does not hold it", index_path.c_str(),
           name.c_str(), file.get<std::string>().c_str());
    }
  }
}

void Checkpoint::Add(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".bin" || extension == ".pth" || extension == ".pt") {
    AddAll(std::make_unique<TorchFile>(path));
  } else {
    AddAll(std::make_unique<SafetensorsFile>(path));
  }
}

template <typename File>
void Checkpoint::AddAll(std::unique_ptr<File> file) {
  for (const SourceTensor& tensor : file->tensors()) {
    const auto [at, is_new] = entries_.emplace(tensor.name, Entry{&tensor, file.get()});
    if (!is_new) {
      Fail("tensor %s is both in %s and in %s", tensor.name.c_str(),
           at->second.file->path().c_str(), file->path().c_str());
    }
  }
  files_.push_back(std::move(file));
}

const Checkpoint::Entry* Checkpoint::Find(const std::string& name) const {
  const auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : &at->second;
}

void Checkpoint::AddDecoded(std::unique_ptr<DecodedTensor> tensor, const TensorFile* file,
                            const std::vector<std::string>& parts) {
  for (const std::string& part : parts) entries_.erase(part);
  const std::string& name = tensor->tensor().name;
  Entry entry;
  entry.tensor = &tensor->tensor();
  entry.file = file;
  entry.decoded = tensor.get();
  if (!entries_.emplace(name, entry).second) {
    Fail("%s: tensor %s is both quantised and not", file->path().c_str(), name.c_str());
  }
  decoded_.push_back(std::move(tensor));
}

void Checkpoint::LeaveOutRows(const std::string& name, uint32_t rows, uint32_t more) {
  const auto at = entries_.find(name);
  if (at == entries_.end()) return;
  SourceTensor tensor = *at->second.tensor;
  if (tensor.shape.size() != 2 || tensor.shape[0] != uint64_t{rows} + more) return;
  tensor.bytes = tensor.bytes / tensor.shape[0] * rows;
  tensor.shape[0] = rows;
  at->second.tensor = &(shortened_[name] = std::move(tensor));
}

bool Checkpoint::IsQuantised(const Entry& entry) {
  return entry.decoded != nullptr || FindBlockFormat(entry.tensor->dtype) != nullptr;
}

bool Checkpoint::IsTernary(const Entry& entry) {
  return entry.tensor->dtype == "TQ1_0" || entry.tensor->dtype == "TQ2_0";
}

bool Checkpoint::IsHeldBy(const Entry& entry, DType dtype) {
  const BlockFormat* format =
      entry.decoded == nullptr ? FindBlockFormat(entry.tensor->dtype) : nullptr;
  return format != nullptr && format->IsHeldBy(dtype);
}

void Checkpoint::ReadHeld(const Entry& entry, const CodeType& type, uint64_t first, uint64_t count,
                          uint8_t* codes, int16_t* entries) {
  const BlockFormat& format = *FindBlockFormat(entry.tensor->dtype);
  const uint64_t n = count / format.elements, of_block = type.Entries(format.elements);
  std::vector<std::byte> blocks(n * format.bytes);
  entry.file->Read(entry.tensor->offset + first / format.elements * format.bytes, blocks.data(),
                   blocks.size());
  for (uint64_t i = 0; i < n; ++i) {
    if (format.Hold(type, blocks.data() + i * format.bytes, codes + i * format.elements,
                    entries + i * of_block)) {
      continue;
    }
    Fail(
        "%s: tensor %s: %s does not hold block %llu of %s exactly, because its scale is no f16 "
        "number: --weights f32 keeps its values, --weights int8 --requantise quantises it again",
        entry.file->path().c_str(), entry.tensor->name.c_str(), DTypeName(type.dtype),
        static_cast<unsigned long long>(first / format.elements + i), format.name);
  }
}

bool Checkpoint::IsFloat(const SourceTensor& tensor) {
  return tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16" ||
         tensor.dtype == "F64" || FindBlockFormat(tensor.dtype) != nullptr;
}

namespace {

// Reads elements [first, first + count) of a block-quantised tensor, several blocks at a time.
void ReadBlocks(const Checkpoint::Entry& entry, const BlockFormat& format, uint64_t first,
                uint64_t count, float* out) {
  constexpr uint32_t kMostBlocks = 64;
  std::byte blocks[kMostBlocks * kMaxBlockBytes];
  float values[kMostBlocks * kMaxBlockElements];
  const uint64_t last = first + count;
  for (uint64_t at = first; at < last;) {
    const uint64_t block = at / format.elements;
    const uint64_t n = std::min<uint64_t>(CeilDiv(last, format.elements) - block, kMostBlocks);
    entry.file->Read(entry.tensor->offset + block * format.bytes, blocks,
                     static_cast<size_t>(n * format.bytes));
    for (uint64_t i = 0; i < n; ++i) {
      format.dequantise(blocks + i * format.bytes, values + i * format.elements);
    }
    const uint64_t begin = at - block * format.elements;
    const uint64_t taken = std::min(n * format.elements - begin, last - at);
    std::copy_n(values + begin, taken, out + (at - first));
    at += taken;
  }
}

// Converts by four, with the vector extension of GCC and Clang: most checkpoints are of this type,
// and compilers do not do it by themselves.
void WidenBf16(const uint16_t* halves, size_t n, float* out) {
  typedef uint16_t Halves __attribute__((vector_size(8)));
  typedef uint32_t Words __attribute__((vector_size(16)));
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    Halves four;
    std::memcpy(&four, halves + i, sizeof four);
    const Words words = __builtin_convertvector(four, Words) << 16;
    std::memcpy(out + i, &words, sizeof words);
  }
  for (; i < n; ++i) out[i] = F32FromBf16(halves[i]);
}

// Reads elements [first, first + count) of an f64 tensor, rounded to the nearest float.
void ReadDoubles(const Checkpoint::Entry& entry, uint64_t first, uint64_t count, float* out) {
  double doubles[2048];
  for (uint64_t done = 0; done < count;) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(count - done, std::size(doubles)));
    entry.file->Read(entry.tensor->offset + (first + done) * 8, doubles, n * 8);
    for (size_t i = 0; i < n; ++i) out[done + i] = static_cast<float>(doubles[i]);
    done += n;
  }
}

}  // namespace

void Checkpoint::ReadFloats(const Entry& entry, uint64_t first, uint64_t count, float* out) {
  ReadStored(entry, first, count, out);
  if (entry.added != nullptr) entry.added->AddTo(first, count, out);
}

void Checkpoint::ReadStored(const Entry& entry, uint64_t first, uint64_t count, float* out) {
  const SourceTensor& tensor = *entry.tensor;
  if (entry.decoded != nullptr) return entry.decoded->Read(first, count, out);
  if (const uint64_t elements = tensor.elements(); elements != 0) {
    // About: a block may begin before.
    const double share = static_cast<double>(tensor.bytes) / static_cast<double>(elements);
    entry.file->Expect(tensor.offset + static_cast<uint64_t>(static_cast<double>(first) * share),
                       static_cast<uint64_t>(static_cast<double>(count) * share));
  }
  if (tensor.dtype == "F32") {
    entry.file->Read(tensor.offset + first * 4, out, static_cast<size_t>(count * 4));
    return;
  }
  if (tensor.dtype == "F64") return ReadDoubles(entry, first, count, out);
  if (const BlockFormat* format = FindBlockFormat(tensor.dtype)) {
    return ReadBlocks(entry, *format, first, count, out);
  }
  const bool is_bf16 = tensor.dtype == "BF16";
  uint16_t halves[8192];
  for (uint64_t done = 0; done < count;) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(count - done, std::size(halves)));
    entry.file->Read(tensor.offset + (first + done) * 2, halves, n * 2);
    float* to = out + done;
    if (is_bf16) {
      WidenBf16(halves, n, to);
    } else {
      for (size_t i = 0; i < n; ++i) to[i] = F32FromF16(halves[i]);
    }
    done += n;
  }
}

}  // namespace arn::convert
