#include "converter/hf/torch_file.h"

#include <algorithm>
#include <cinttypes>
#include <set>

#include "converter/base/error.h"
#include "converter/hf/zip.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

using Kind = PickledValue::Kind;

// Begins the form before the archive (torch/serialization.py).
constexpr std::string_view kOldMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kOldProtocol = 1001;

uint64_t BytesOfElement(const char* dtype) {
  const std::string_view name(dtype);
  if (name == "F64" || name == "I64" || name == "U64" || name == "C64") return 8;
  if (name == "F32" || name == "I32" || name == "U32") return 4;
  return name == "F16" || name == "BF16" || name == "I16" || name == "U16" ? 2 : 1;
}

// True if the elements follow each other in row-major order. Strides of single elements are free.
bool IsRowMajor(const PickledTensor& tensor) {
  uint64_t expected = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

}  // namespace

TorchFile::TorchFile(const std::filesystem::path& path) : file_(path) {
  uint8_t first = 0;
  if (file_.bytes() > 0) file_.Read(0, &first, 1);
  if (first == 0x80) {
    ReadOldForm();
  } else {
    ReadArchive();
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
  for (size_t i = 1; i < tensors_.size(); ++i) {
    if (tensors_[i].name != tensors_[i - 1].name) continue;
    Fail("%s: tensor %s is there twice", path.c_str(), tensors_[i].name.c_str());
  }
}

void TorchFile::ReadArchive() {
  const std::vector<ZipEntry> entries = ReadZip(file_);
  constexpr std::string_view kPickleName = "/data.pkl";
  const auto is_pickle = [&](const ZipEntry& entry) {
    const size_t slash = entry.name.find('/');
    return slash != std::string::npos && entry.name.compare(slash, SIZE_MAX, kPickleName) == 0;
  };
  const auto found = std::find_if(entries.begin(), entries.end(), is_pickle);
  if (found == entries.end()) {
    Fail("%s: has no data.pkl: torch.save did not write it", path().c_str());
  }
  if (found->bytes > kMaxPickleBytes) {
    Fail("%s: %s has %" PRIu64 " bytes, expected at most %" PRIu64, path().c_str(),
         found->name.c_str(), found->bytes, kMaxPickleBytes);
  }
  const auto text_of = [&](const ZipEntry& entry) {
    std::string text(static_cast<size_t>(entry.bytes), '\0');
    file_.Read(entry.offset, text.data(), text.size());
    return text;
  };
  const std::string root = found->name.substr(0, found->name.size() - kPickleName.size() + 1);
  const std::string storages = root + "data/";
  Places places;
  for (const ZipEntry& entry : entries) {
    if (entry.name.compare(0, storages.size(), storages) == 0) {
      places[entry.name.substr(storages.size())] = {entry.offset, entry.bytes};
    }
    const bool is_order = entry.name == root + "byteorder" && entry.bytes < 16;
    if (is_order && text_of(entry) != "little") {
      Fail("%s: byte order %s, expected little", path().c_str(), text_of(entry).c_str());
    }
  }
  const std::string text = text_of(*found);
  AddTensors(ReadPickle(text, path().string()), places);
}

// Five pickles: a magic number, a version, the machine's byte order, the tensors and the storages'
// keys; then of each storage the number of elements, 8 bytes, and these.
void TorchFile::ReadOldForm() {
  const std::string label = path().string();
  std::string text;
  Pickle pickles[5];
  uint64_t at = 0;
  for (uint64_t window = 1u << 20;; window *= 4) {
    const uint64_t n = std::min({window, file_.bytes(), kMaxPickleBytes});
    text.resize(static_cast<size_t>(n));
    file_.Read(0, text.data(), text.size());
    at = 0;
    try {
      for (Pickle& pickle : pickles) {
        pickle = ReadPickle(std::string_view(text).substr(static_cast<size_t>(at)), label);
        at += pickle.bytes;
      }
      break;
    } catch (const PickleEnded&) {
      if (n < window) throw;
    }
  }
  const auto top = [&](size_t i) -> const PickledValue& {
    return pickles[i].values[pickles[i].top];
  };
  if (top(0).text != kOldMagic || top(1).number != kOldProtocol || top(2).kind != Kind::kDict) {
    Fail("%s: torch.save did not write it", label.c_str());
  }
  const std::vector<uint32_t>& system = top(2).items;
  for (size_t i = 0; i + 1 < system.size(); i += 2) {
    if (pickles[2].values[system[i]].text != "little_endian") continue;
    if (pickles[2].values[system[i + 1]].number != 1) {
      Fail("%s: big-endian bytes, expected little-endian", label.c_str());
    }
  }
  // Elements of a storage have the size of the type that the tensors' pickle says.
  std::map<std::string_view, uint64_t> sizes;
  for (const PickledStorage& storage : pickles[3].storages) {
    sizes[storage.key] = storage.dtype == nullptr ? 1 : BytesOfElement(storage.dtype);
  }
  Places places;
  for (const uint32_t item : top(4).items) {
    const std::string_view key = pickles[4].values[item].text;
    const auto size = sizes.find(key);
    uint64_t elements = 0, bytes = 0;
    if (at + 8 <= file_.bytes()) file_.Read(at, &elements, 8);
    if (size == sizes.end() || at + 8 > file_.bytes() ||
        !CheckedMul(elements, size->second, &bytes) || bytes > file_.bytes() - at - 8) {
      Fail("%s: truncated: storage %s of %" PRIu64 " elements at %" PRIu64
           " does not fit in %" PRIu64 " bytes",
           label.c_str(), std::string(key).c_str(), elements, at, file_.bytes());
    }
    places[std::string(key)] = {at + 8, bytes};
    at += 8 + bytes;
  }
  AddTensors(pickles[3], places);
}

void TorchFile::AddTensors(const Pickle& pickle, const Places& places) {
  const PickledValue& top = pickle.values[pickle.top];
  if (top.kind != Kind::kDict) {
    Fail("%s: expected a dictionary of tensors (torch.save(model.state_dict(), FILE))",
         path().c_str());
  }
  for (size_t i = 0; i < top.items.size(); i += 2) {
    const PickledValue& key = pickle.values[top.items[i]];
    const PickledValue& value = pickle.values[top.items[i + 1]];
    const std::string name = key.kind == Kind::kText ? std::string(key.text) : "(no text)";
    if (key.kind != Kind::kText || value.kind != Kind::kTensor) {
      Fail(
          "%s: %s is no tensor: expected a dictionary of tensors "
          "(torch.save(model.state_dict(), FILE))",
          path().c_str(), name.c_str());
    }
    const PickledTensor& tensor = pickle.tensors[static_cast<size_t>(value.number)];
    tensors_.push_back(Located(name, tensor, pickle.storages[tensor.storage], places));
  }
}

SourceTensor TorchFile::Located(const std::string& name, const PickledTensor& tensor,
                                const PickledStorage& storage, const Places& places) const {
  const auto place = places.find(storage.key);
  if (place == places.end()) {
    Fail("%s: tensor %s: its storage %s is not in the file", path().c_str(), name.c_str(),
         std::string(storage.key).c_str());
  }
  const uint64_t size = BytesOfElement(tensor.dtype);
  const uint64_t stored_size = storage.dtype == nullptr ? 1 : BytesOfElement(storage.dtype);
  uint64_t stored = 0;
  if (!CheckedMul(storage.elements, stored_size, &stored) || stored != place->second.bytes) {
    Fail("%s: tensor %s: its storage %s has %" PRIu64 " bytes, expected %" PRIu64 " elements of %s",
         path().c_str(), name.c_str(), std::string(storage.key).c_str(), place->second.bytes,
         storage.elements, tensor.dtype);
  }
  SourceTensor out;
  out.name = name;
  out.dtype = tensor.dtype;
  out.shape = tensor.shape;
  // The elements that the tensor has, and that it reaches from its offset on.
  uint64_t elements = 1, reach = 1, bytes = 0;
  bool fits = true;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    uint64_t step = 0;
    fits = fits && CheckedMul(elements, tensor.shape[i], &elements) &&
           CheckedMul(std::max<uint64_t>(tensor.shape[i], 1) - 1, tensor.strides[i], &step) &&
           CheckedAdd(reach, step, &reach);
  }
  if (elements == 0) reach = 0;
  fits = fits && CheckedAdd(tensor.offset, reach, &reach) && CheckedMul(reach, size, &bytes) &&
         bytes <= place->second.bytes;
  if (!fits) {
    Fail("%s: tensor %s: %s %s from element %" PRIu64 " on exceeds its storage of %" PRIu64
         " bytes",
         path().c_str(), name.c_str(), tensor.dtype, ShapeText(tensor.shape).c_str(), tensor.offset,
         place->second.bytes);
  }
  if (elements != 0 && !IsRowMajor(tensor)) {
    out.dtype += " with strides " + ShapeText(tensor.strides);
    return out;
  }
  out.offset = place->second.offset + tensor.offset * size;
  out.bytes = elements * size;
  return out;
}

}  // namespace arn::convert
