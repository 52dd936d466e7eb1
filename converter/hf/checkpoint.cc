#include "converter/hf/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "converter/base/error.h"
#include "converter/gguf/block_formats.h"
#include "converter/hf/json_file.h"
#include "converter/hf/lora.h"
#include "converter/hf/safetensors.h"
#include "nlohmann/json.hpp"
#include "platform/base/arith.h"

namespace arn::convert {

namespace fs = std::filesystem;

Checkpoint::Checkpoint(const fs::path& folder) {
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(single)) {
    Add(single);
  } else if (fs::exists(index)) {
    OpenSharded(folder, index);
  } else {
    const bool has_pickle = fs::exists(folder / "pytorch_model.bin") ||
                            fs::exists(folder / "pytorch_model.bin.index.json");
    Fail("%s: the folder has neither model.safetensors nor model.safetensors.index.json%s",
         folder.c_str(),
         has_pickle ? " (pytorch_model.bin is not read: save the checkpoint as safetensors)" : "");
  }
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

void Checkpoint::OpenSharded(const fs::path& folder, const fs::path& index_path) {
  const nlohmann::json index = LoadJson(index_path);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    Fail("%s: weight_map: expected an object of tensor names and files", index_path.c_str());
  }
  const nlohmann::json& weight_map = index["weight_map"];
  std::set<std::string> shards;
  for (const auto& [name, file] : weight_map.items()) {
    if (!file.is_string()) {
      Fail("%s: weight_map: %s: expected a file name, found %s", index_path.c_str(), name.c_str(),
           Shown(file).c_str());
    }
    const std::string text = file.get<std::string>();
    if (text.empty() || text.find('/') != std::string::npos || text == "." || text == "..") {
      Fail("%s: weight_map: %s: expected the name of a file beside it, found %s",
           index_path.c_str(), name.c_str(), Shown(file).c_str());
    }
    shards.insert(text);
  }
  for (const std::string& shard : shards) Add(folder / shard);
  for (const auto& [name, file] : weight_map.items()) {
    const Entry* entry = Find(name);
    if (entry == nullptr || entry->file->path().filename() != file.get<std::string>()) {
      Fail("%s: weight_map puts tensor %s into %s, which does not hold it", index_path.c_str(),
           name.c_str(), file.get<std::string>().c_str());
    }
  }
}

void Checkpoint::Add(const fs::path& path) {
  auto opened = std::make_unique<SafetensorsFile>(path);
  const SafetensorsFile* file = opened.get();
  files_.push_back(std::move(opened));
  for (const SourceTensor& tensor : file->tensors()) {
    const auto [at, is_new] = entries_.emplace(tensor.name, Entry{&tensor, file});
    if (!is_new) {
      Fail("tensor %s is both in %s and in %s", tensor.name.c_str(),
           at->second.file->path().c_str(), path.c_str());
    }
  }
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
      for (size_t i = 0; i < n; ++i) to[i] = F32FromBf16(halves[i]);
    } else {
      for (size_t i = 0; i < n; ++i) to[i] = F32FromF16(halves[i]);
    }
    done += n;
  }
}

}  // namespace arn::convert
