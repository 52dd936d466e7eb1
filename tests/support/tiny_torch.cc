#include "tests/support/tiny_torch.h"

#include <cstring>
#include <map>

namespace arn::test {
namespace {

namespace fs = std::filesystem;

template <typename T>
std::string Little(T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string Text(const std::string& text) {
  return "X" + Little(static_cast<uint32_t>(text.size())) + text;
}
std::string Whole(uint64_t number) { return "\x8a\x08" + Little(number); }
std::string Global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
std::string WholeTuple(const std::vector<uint64_t>& numbers) {
  std::string text = "(";
  for (const uint64_t n : numbers) text += Whole(n);
  return text + "t";
}

std::string StorageName(const std::string& dtype) {
  static const std::map<std::string, std::string> names = {
      {"F64", "Double"}, {"F32", "Float"}, {"F16", "Half"}, {"BF16", "BFloat16"}, {"I64", "Long"},
      {"I32", "Int"},    {"I16", "Short"}, {"I8", "Char"},  {"U8", "Byte"},       {"BOOL", "Bool"}};
  return names.at(dtype) + "Storage";
}

}  // namespace

std::string EncodeZip(const ZipParts& parts, bool is_64) {
  std::string file, directory;
  const auto number = [&](uint64_t value) {
    return Little(is_64 ? 0xffffffffu : static_cast<uint32_t>(value));
  };
  for (const auto& [name, bytes] : parts) {
    const std::string lengths = Little(static_cast<uint16_t>(name.size()));
    std::string extra;
    if (is_64) {
      extra = Little(uint16_t{1}) + Little(uint16_t{24}) + Little(uint64_t{bytes.size()}) +
              Little(uint64_t{bytes.size()}) + Little(uint64_t{file.size()});
    }
    const std::string sizes = Little(uint32_t{0}) + number(bytes.size()) + number(bytes.size());
    const std::string first =
        Little(uint16_t{0}) + Little(uint16_t{0x800}) + Little(uint16_t{0}) + Little(uint32_t{0});
    directory += "PK\1\2" + Little(uint16_t{0}) + first + sizes + lengths +
                 Little(static_cast<uint16_t>(extra.size())) + std::string(10, '\0') +
                 number(file.size()) + name + extra;
    // As torch, whose local headers have an extra field to align the data.
    const std::string padding = "FB" + Little(uint16_t{5}) + "ZZZZZ";
    file += "PK\3\4" + first + sizes + lengths + Little(static_cast<uint16_t>(padding.size())) +
            name + padding + bytes;
  }
  const uint64_t begin = file.size();
  file += directory;
  if (is_64) {
    const uint64_t end = file.size();
    file += "PK\6\6" + Little(uint64_t{44}) + std::string(12, '\0') +
            Little(uint64_t{parts.size()}) + Little(uint64_t{parts.size()}) +
            Little(uint64_t{directory.size()}) + Little(begin);
    file += "PK\6\7" + Little(uint32_t{0}) + Little(end) + Little(uint32_t{1});
  }
  const auto count = static_cast<uint16_t>(is_64 ? 0xffff : parts.size());
  return file + "PK\5\6" + std::string(4, '\0') + Little(count) + Little(count) +
         number(directory.size()) + number(begin) + std::string(2, '\0');
}

std::string EncodeTorchArchive(const std::string& pickle, const std::vector<std::string>& storages,
                               bool is_64) {
  ZipParts parts = {{"archive/data.pkl", pickle}, {"archive/byteorder", "little"}};
  for (size_t i = 0; i < storages.size(); ++i) {
    parts.emplace_back("archive/data/" + std::to_string(i), storages[i]);
  }
  parts.emplace_back("archive/version", "3\n");
  return EncodeZip(parts, is_64);
}

std::string EncodeTorch(const TinyTensors& tensors, bool is_64) {
  std::string pickle = "\x80\x02}q";
  pickle += std::string(1, '\0') + "(";
  std::vector<std::string> storages;
  for (const auto& [name, tensor] : tensors) {
    uint64_t elements = 1;
    std::vector<uint64_t> strides(tensor.shape.size(), 1);
    for (size_t i = strides.size(); i-- > 0; elements *= tensor.shape[i]) strides[i] = elements;
    pickle += Text(name) + Global("torch._utils", "_rebuild_tensor_v2") + "((" + Text("storage") +
              Global("torch", StorageName(tensor.dtype)) + Text(std::to_string(storages.size())) +
              Text("cpu") + Whole(elements) + "tQ" + Whole(0) + WholeTuple(tensor.shape) +
              WholeTuple(strides) + "\x89" + Global("collections", "OrderedDict") + ")RtR";
    storages.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
  }
  return EncodeTorchArchive(pickle + "u.", storages, is_64);
}

void UseTorchFiles(const fs::path& folder) {
  const auto renamed = [](std::string name) {
    const size_t at = name.find(".safetensors");
    if (at != std::string::npos) name.replace(at, std::string::npos, ".bin");
    return name.rfind("model", 0) == 0 ? "pytorch_" + name : name;
  };
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  for (const fs::path& path : files) {
    if (path.filename() == "model.safetensors.index.json") {
      const std::vector<uint8_t> text = ReadFile(path);
      nlohmann::json index = nlohmann::json::parse(text.begin(), text.end());
      for (auto& file : index["weight_map"]) file = renamed(file.get<std::string>());
      WriteFile(folder / "pytorch_model.bin.index.json", index.dump());
      fs::remove(path);
    }
    if (path.extension() != ".safetensors") continue;
    const std::vector<uint8_t> bytes = ReadFile(path);
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes.data(), 8);
    const auto data = bytes.begin() + 8 + static_cast<ptrdiff_t>(header_bytes);
    const nlohmann::json header = nlohmann::json::parse(bytes.begin() + 8, data);
    TinyTensors tensors;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const auto begin = entry["data_offsets"][0].get<ptrdiff_t>();
      const auto end = entry["data_offsets"][1].get<ptrdiff_t>();
      tensors[name] = {entry["dtype"].get<std::string>(),
                       entry["shape"].get<std::vector<uint64_t>>(),
                       std::vector<uint8_t>(data + begin, data + end)};
    }
    WriteFile(folder / renamed(path.filename().string()), EncodeTorch(tensors));
    fs::remove(path);
  }
}

}  // namespace arn::test
