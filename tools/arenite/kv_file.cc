#include "tools/arenite/kv_file.h"

#include <cstring>
#include <string_view>

#include "nlohmann/json.hpp"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"

namespace arn::tool {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;  // of the header, little endian

std::string KeysName(size_t layer) { return "layers." + std::to_string(layer) + ".keys"; }
std::string ValuesName(size_t layer) { return "layers." + std::to_string(layer) + ".values"; }

// Reads tensors out of a file's bytes.
class Tensors {
 public:
  Tensors(const std::string& path, std::string bytes) : path_(path), bytes_(std::move(bytes)) {
    uint64_t length = 0;
    if (bytes_.size() >= kLengthBytes) std::memcpy(&length, bytes_.data(), kLengthBytes);
    if (bytes_.size() < kLengthBytes || length > bytes_.size() - kLengthBytes) {
      throw Error(path_ + ": not a safetensors file");
    }
    data_ = kLengthBytes + static_cast<size_t>(length);
    header_ = Json::parse(std::string_view(bytes_).substr(kLengthBytes, length), nullptr, false);
    if (!header_.is_object()) throw Error(path_ + ": its header is not a JSON object");
  }

  std::vector<uint64_t> Shape(const std::string& name) const {
    std::vector<uint64_t> shape;
    const Json& entry = Entry(name);
    if (!entry.contains("shape") || !entry["shape"].is_array()) Fail(name, "has no shape");
    for (const Json& size : entry["shape"]) {
      if (!size.is_number_unsigned()) Fail(name, "has a shape that is not of whole numbers");
      shape.push_back(size.get<uint64_t>());
    }
    return shape;
  }

  // out: as many 32-bit elements as the shape has.
  void Read(const std::string& name, const char* dtype, void* out, size_t n) const {
    const Json& entry = Entry(name);
    if (entry.value("dtype", "") != dtype) Fail(name, std::string("is not of type ") + dtype);
    const Json offsets = entry.value("data_offsets", Json());
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      Fail(name, "has no data_offsets");
    }
    const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
    const uint64_t room = bytes_.size() - data_;
    if (begin > end || end > room || end - begin != n * sizeof(float)) {
      Fail(name, "does not lie in the file as its shape says (truncated?)");
    }
    std::memcpy(out, bytes_.data() + data_ + begin, n * sizeof(float));
  }

  [[noreturn]] void Fail(const std::string& name, const std::string& reason) const {
    throw Error(path_ + ": tensor " + name + " " + reason);
  }

 private:
  const Json& Entry(const std::string& name) const {
    const auto found = header_.find(name);
    if (found == header_.end() || !found->is_object()) Fail(name, "is missing");
    return *found;
  }

  std::string path_;
  std::string bytes_;
  size_t data_ = 0;
  Json header_;
};

void ReadRows(const Tensors& tensors, const std::string& name, const KvFileLayer& layer, size_t n,
              std::vector<float>* out) {
  std::vector<uint64_t> shape = tensors.Shape(name);
  if (shape.size() == 4 && shape[0] == 1) shape.erase(shape.begin());
  if (shape != std::vector<uint64_t>{layer.n_kv_heads, n, layer.head_dim}) {
    tensors.Fail(
        name, Format("does not have the shape [%u, %zu, %u]", layer.n_kv_heads, n, layer.head_dim));
  }
  out->resize(size_t{layer.n_kv_heads} * n * layer.head_dim);
  tensors.Read(name, "F32", out->data(), out->size());
}

}  // namespace

void WriteKvFile(const std::string& path, const KvFile& file) {
  struct Part {
    std::string name;
    const char* dtype;
    std::vector<uint64_t> shape;
    const void* data;
    size_t bytes;
  };
  const uint64_t n = file.ids.size();
  std::vector<Part> parts = {
      {"ids", "I32", {n}, file.ids.data(), file.ids.size() * sizeof(int32_t)}};
  for (size_t i = 0; i < file.layers.size(); ++i) {
    const KvFileLayer& layer = file.layers[i];
    if (layer.n_kv_heads == 0) continue;
    const std::vector<uint64_t> shape = {layer.n_kv_heads, n, layer.head_dim};
    parts.push_back(
        {KeysName(i), "F32", shape, layer.keys.data(), layer.keys.size() * sizeof(float)});
    parts.push_back(
        {ValuesName(i), "F32", shape, layer.values.data(), layer.values.size() * sizeof(float)});
  }
  Json header = {{"__metadata__", {{"format", "arenite-kv"}}}};
  uint64_t at = 0;
  for (const Part& part : parts) {
    header[part.name] = {
        {"dtype", part.dtype}, {"shape", part.shape}, {"data_offsets", {at, at + part.bytes}}};
    at += part.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  OutputFile out(path);
  out.Write(&length, kLengthBytes);
  out.Write(text.data(), text.size());
  for (const Part& part : parts) out.Write(part.data, part.bytes);
  out.Close();
}

KvFile ReadKvFile(const std::string& path, std::vector<KvFileLayer> layers) {
  const Tensors tensors(path, ReadFile(path));
  KvFile file;
  const std::vector<uint64_t> shape = tensors.Shape("ids");
  if (shape.size() != 1 || shape[0] == 0 || shape[0] > INT32_MAX) {
    tensors.Fail("ids", "is not a list of tokens");
  }
  file.ids.resize(static_cast<size_t>(shape[0]));
  tensors.Read("ids", "I32", file.ids.data(), file.ids.size());
  file.layers = std::move(layers);
  for (size_t i = 0; i < file.layers.size(); ++i) {
    KvFileLayer& layer = file.layers[i];
    if (layer.n_kv_heads == 0) continue;
    ReadRows(tensors, KeysName(i), layer, file.ids.size(), &layer.keys);
    ReadRows(tensors, ValuesName(i), layer, file.ids.size(), &layer.values);
  }
  return file;
}

}  // namespace arn::tool
