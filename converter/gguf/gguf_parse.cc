#include "converter/gguf/gguf_parse.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <set>

#include "converter/base/error.h"
#include "nlohmann/json.hpp"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

constexpr uint64_t kMaxNameBytes = 65535;
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1u << 20;
// Minimum bytes of an entry: a name of one byte, a type, a byte or the fixed fields.
constexpr uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

// ggml's element types by number (enum ggml_type). Their sizes are needed to check the tensors'
// ranges; convertible types are checked where a tensor is used.
struct ElementType {
  uint32_t number;
  const char* name;
  uint32_t elements;  // per block
  uint32_t bytes;
};
constexpr ElementType kElementTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
};

enum ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
// Minimum bytes of a value.
constexpr uint64_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

// Returns a name in a form that is safe to print in an error.
std::string Printable(const std::string& name) {
  std::string text = name.substr(0, 60);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  }
  return text + (name.size() > 60 ? "..." : "");
}

class Parser {
 public:
  Parser(Span<const std::byte> bytes, const std::string& label) : bytes_(bytes), label_(label) {}

  GgufContents Parse() {
    ReadStart();
    const uint64_t n_tensors = Count("tensors", kLeastTensorBytes);
    const uint64_t n_keys = Count("metadata keys", kLeastKeyBytes);
    for (uint64_t i = 0; i < n_keys; ++i) ReadKey();
    alignment_ = Alignment();
    std::vector<uint64_t> relative;
    for (uint64_t i = 0; i < n_tensors; ++i) ReadTensor(&relative);
    PlaceTensors(relative);
    return std::move(contents_);
  }

 private:
  uint64_t left() const { return bytes_.size() - at_; }

  template <typename T>
  T Take(const std::string& what) {
    if (left() < sizeof(T)) {
      Fail("%s: truncated: %s at byte %" PRIu64 " of %zu", label_.c_str(), what.c_str(), at_,
           bytes_.size());
    }
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  std::string TakeString(const std::string& what, uint64_t most) {
    const uint64_t size = Take<uint64_t>(what);
    if (size > most || size > left()) {
      Fail("%s: %s: a string of %" PRIu64 " bytes, expected at most %" PRIu64, label_.c_str(),
           what.c_str(), size, std::min(most, left()));
    }
    std::string text(reinterpret_cast<const char*>(bytes_.data() + at_), static_cast<size_t>(size));
    at_ += size;
    return text;
  }

  // Reads a count of items that take at least `least` bytes each.
  uint64_t Count(const char* what, uint64_t least) {
    const uint64_t count = Take<uint64_t>(std::string("the count of ") + what);
    if (count > left() / least) {
      Fail("%s: %" PRIu64 " %s do not fit the file's %zu bytes", label_.c_str(), count, what,
           bytes_.size());
    }
    return count;
  }

  void ReadStart() {
    if (bytes_.size() < 4 || std::memcmp(bytes_.data(), "GGUF", 4) != 0) {
      Fail("%s: not a GGUF file: it does not begin with GGUF", label_.c_str());
    }
    at_ = 4;
    const uint32_t version = Take<uint32_t>("the version");
    if (version != 0 && (version & 0xFFFFu) == 0) {
      Fail("%s: a big-endian GGUF file, which is not supported", label_.c_str());
    }
    if (version != 2 && version != 3) {
      Fail("%s: GGUF version %u is not supported (supported: 2 and 3)", label_.c_str(), version);
    }
  }

  void ReadKey() {
    const std::string key = TakeString("a metadata key", kMaxNameBytes);
    const std::string name = "metadata key " + Printable(key);
    if (key.empty()) Fail("%s: a metadata key is empty", label_.c_str());
    if (contents_.metadata.contains(key)) {
      Fail("%s: %s appears twice", label_.c_str(), name.c_str());
    }
    const uint32_t type = Take<uint32_t>(name);
    contents_.metadata[key] = type == kArray ? TakeArray(name) : TakeValue(type, name);
  }

  nlohmann::json TakeArray(const std::string& name) {
    const uint32_t type = Take<uint32_t>(name);
    if (type >= std::size(kValueBytes) || type == kArray) {
      Fail("%s: %s: an array of type %u, which is not supported", label_.c_str(), name.c_str(),
           type);
    }
    const uint64_t count = Take<uint64_t>(name);
    if (count > left() / kValueBytes[type]) {
      Fail("%s: %s: an array of %" PRIu64 " elements does not fit the file's %zu bytes",
           label_.c_str(), name.c_str(), count, bytes_.size());
    }
    nlohmann::json::array_t list;
    list.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) list.push_back(TakeValue(type, name));
    return list;
  }

  nlohmann::json TakeValue(uint32_t type, const std::string& name) {
    switch (type) {
      case kUint8: return Take<uint8_t>(name);
      case kInt8: return Take<int8_t>(name);
      case kUint16: return Take<uint16_t>(name);
      case kInt16: return Take<int16_t>(name);
      case kUint32: return Take<uint32_t>(name);
      case kInt32: return Take<int32_t>(name);
      case kFloat32: return static_cast<double>(Take<float>(name));
      case kUint64: return Take<uint64_t>(name);
      case kInt64: return Take<int64_t>(name);
      case kFloat64: return Take<double>(name);
      case kString: return TakeString(name, UINT64_MAX);
      case kBool: {
        const uint8_t value = Take<uint8_t>(name);
        if (value > 1) {
          Fail("%s: %s: a boolean with value %u", label_.c_str(), name.c_str(), value);
        }
        return value == 1;
      }
      default: break;
    }
    Fail("%s: %s: unknown value type %u", label_.c_str(), name.c_str(), type);
  }

  uint64_t Alignment() const {
    const auto found = contents_.metadata.find("general.alignment");
    if (found == contents_.metadata.end()) return kDefaultAlignment;
    const uint64_t value = found->is_number_unsigned() ? found->get<uint64_t>() : 0;
    if (!IsPowerOfTwo(value) || value > kMaxAlignment) {
      Fail("%s: general.alignment is %s, expected a power of two of at most %" PRIu64,
           label_.c_str(),
           found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
               .substr(0, 60)
               .c_str(),
           kMaxAlignment);
    }
    return value;
  }

  void ReadTensor(std::vector<uint64_t>* relative) {
    SourceTensor tensor;
    tensor.name = TakeString("a tensor's name", kMaxNameBytes);
    const std::string name = "tensor " + Printable(tensor.name);
    if (!names_.insert(tensor.name).second) {
      Fail("%s: %s appears twice", label_.c_str(), name.c_str());
    }
    const uint32_t n_dimensions = Take<uint32_t>(name);
    if (n_dimensions == 0 || n_dimensions > kMaxDimensions) {
      Fail("%s: %s: %u dimensions, expected 1 to %u", label_.c_str(), name.c_str(), n_dimensions,
           kMaxDimensions);
    }
    uint64_t elements = 1;
    for (uint32_t i = 0; i < n_dimensions; ++i) {
      const uint64_t size = Take<uint64_t>(name);
      tensor.shape.insert(tensor.shape.begin(), size);
      if (size == 0) Fail("%s: %s: dimension %u is 0", label_.c_str(), name.c_str(), i);
      if (!CheckedMul(elements, size, &elements)) {
        Fail("%s: %s: the shape %s overflows", label_.c_str(), name.c_str(),
             ShapeText(tensor.shape).c_str());
      }
    }
    const uint32_t number = Take<uint32_t>(name);
    const auto type = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                   [&](const ElementType& t) { return t.number == number; });
    if (type == std::end(kElementTypes)) {
      Fail("%s: %s: element type %u is not known", label_.c_str(), name.c_str(), number);
    }
    tensor.dtype = type->name;
    if (tensor.shape.back() % type->elements != 0) {
      Fail("%s: %s: rows of %" PRIu64 " are not whole blocks of %u (%s)", label_.c_str(),
           name.c_str(), tensor.shape.back(), type->elements, type->name);
    }
    if (!CheckedMul(elements / type->elements, type->bytes, &tensor.bytes)) {
      Fail("%s: %s: the shape %s overflows", label_.c_str(), name.c_str(),
           ShapeText(tensor.shape).c_str());
    }
    relative->push_back(Take<uint64_t>(name));
    if (relative->back() % alignment_ != 0) {
      Fail("%s: %s: misaligned: it begins at %" PRIu64 ", not a multiple of %" PRIu64,
           label_.c_str(), name.c_str(), relative->back(), alignment_);
    }
    contents_.tensors.push_back(std::move(tensor));
  }

  // Converts offsets from the start of the data, which follows the tensor infos, to file offsets.
  void PlaceTensors(const std::vector<uint64_t>& relative) {
    if (relative.empty()) return;
    const uint64_t begin = AlignUp(at_, alignment_);
    std::vector<const SourceTensor*> by_place;
    for (size_t i = 0; i < relative.size(); ++i) {
      SourceTensor& tensor = contents_.tensors[i];
      uint64_t end = 0;
      if (!CheckedAdd(begin, relative[i], &tensor.offset) ||
          !CheckedAdd(tensor.offset, tensor.bytes, &end) || end > bytes_.size()) {
        Fail("%s: tensor %s: %" PRIu64 " bytes at %" PRIu64
             " of the data exceed the file's %zu (truncated?)",
             label_.c_str(), Printable(tensor.name).c_str(), tensor.bytes, relative[i],
             bytes_.size());
      }
      by_place.push_back(&tensor);
    }
    std::sort(by_place.begin(), by_place.end(),
              [](const SourceTensor* a, const SourceTensor* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < by_place.size(); ++i) {
      const SourceTensor& before = *by_place[i - 1];
      if (before.offset + before.bytes > by_place[i]->offset) {
        Fail("%s: tensors %s and %s overlap", label_.c_str(), Printable(before.name).c_str(),
             Printable(by_place[i]->name).c_str());
      }
    }
  }

  const Span<const std::byte> bytes_;
  const std::string& label_;
  uint64_t at_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  std::set<std::string> names_;
  GgufContents contents_;
};

}  // namespace

GgufContents ParseGguf(Span<const std::byte> bytes, const std::string& label) {
  return Parser(bytes, label).Parse();
}

}  // namespace arn::convert
