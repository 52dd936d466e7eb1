#include "converter/hf/pickle.h"

#include <algorithm>
#include <cstring>

namespace arn::convert {
namespace {

using Kind = PickledValue::Kind;

// Bounds memory: a checkpoint has about 16 values for each tensor.
constexpr size_t kMostValues = size_t{1} << 22;
constexpr size_t kMostDimensions = 8;

enum class GlobalUse : uint8_t {
  kDict,
  kStorage,
  kElement,   // an element type
  kTensor,    // of storage, offset, size and strides
  kTensorOf,  // the same, with an element type after 6 arguments
  kParameter,
};

struct KnownGlobal {
  const char* name;
  GlobalUse use;
  const char* dtype;
};

constexpr KnownGlobal kKnownGlobals[] = {
    {"collections.OrderedDict", GlobalUse::kDict, nullptr},
    {"torch._utils._rebuild_tensor", GlobalUse::kTensor, nullptr},
    {"torch._utils._rebuild_tensor_v2", GlobalUse::kTensor, nullptr},
    {"torch._utils._rebuild_tensor_v3", GlobalUse::kTensorOf, nullptr},
    {"torch._utils._rebuild_parameter", GlobalUse::kParameter, nullptr},
    {"torch._utils._rebuild_parameter_with_state", GlobalUse::kParameter, nullptr},
    {"torch.DoubleStorage", GlobalUse::kStorage, "F64"},
    {"torch.FloatStorage", GlobalUse::kStorage, "F32"},
    {"torch.HalfStorage", GlobalUse::kStorage, "F16"},
    {"torch.BFloat16Storage", GlobalUse::kStorage, "BF16"},
    {"torch.LongStorage", GlobalUse::kStorage, "I64"},
    {"torch.IntStorage", GlobalUse::kStorage, "I32"},
    {"torch.ShortStorage", GlobalUse::kStorage, "I16"},
    {"torch.CharStorage", GlobalUse::kStorage, "I8"},
    {"torch.ByteStorage", GlobalUse::kStorage, "U8"},
    {"torch.BoolStorage", GlobalUse::kStorage, "BOOL"},
    {"torch.ComplexFloatStorage", GlobalUse::kStorage, "C64"},
    {"torch.storage.UntypedStorage", GlobalUse::kStorage, nullptr},
    {"torch.uint16", GlobalUse::kElement, "U16"},
    {"torch.uint32", GlobalUse::kElement, "U32"},
    {"torch.uint64", GlobalUse::kElement, "U64"},
    {"torch.float8_e4m3fn", GlobalUse::kElement, "F8_E4M3"},
    {"torch.float8_e5m2", GlobalUse::kElement, "F8_E5M2"},
    {"torch.float8_e8m0fnu", GlobalUse::kElement, "F8_E8M0"},
};

class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& label) : bytes_(bytes), label_(label) {}

  Pickle Read() {
    while (!is_done_) {
      op_at_ = at_;
      Step(Number<uint8_t>());
    }
    pickle_.top = Pop();
    pickle_.bytes = at_;
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void FailHere(const std::string& problem) const {
    Fail("%s: byte %zu of the pickle: %s", label_.c_str(), op_at_, problem.c_str());
  }

  std::string_view Take(uint64_t n) {
    if (n > bytes_.size() - at_) {
      throw PickleEnded(Format("%s: truncated: the pickle ends within the value at byte %zu",
                               label_.c_str(), op_at_));
    }
    const std::string_view taken = bytes_.substr(at_, static_cast<size_t>(n));
    at_ += taken.size();
    return taken;
  }
  template <typename T>
  T Number() {
    T value;
    std::memcpy(&value, Take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view Line() {
    const size_t end = bytes_.find('\n', at_);
    const std::string_view line = Take(std::min(end, bytes_.size()) - at_);
    Take(1);
    return line;
  }

  PickledValue& Push(Kind kind, int64_t number = 0, std::string_view text = {}) {
    if (pickle_.values.size() >= kMostValues) {
      FailHere("has more than " + std::to_string(kMostValues) + " values");
    }
    stack_.push_back(static_cast<uint32_t>(pickle_.values.size()));
    PickledValue& value = pickle_.values.emplace_back();
    value.kind = kind;
    value.number = number;
    value.text = text;
    return value;
  }
  // Values below the last mark are not taken.
  uint32_t Pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) FailHere("takes a value of none");
    const uint32_t index = stack_.back();
    stack_.pop_back();
    return index;
  }
  uint32_t Top() {
    const uint32_t index = Pop();
    stack_.push_back(index);
    return index;
  }
  // Returns the values after the last mark, and removes them and the mark.
  std::vector<uint32_t> PopToMark() {
    if (marks_.empty()) FailHere("ends a list that has no start");
    std::vector<uint32_t> items(stack_.begin() + marks_.back(), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  const PickledValue& Value(uint32_t index) const { return pickle_.values[index]; }

  void PushTuple(size_t n) {
    std::vector<uint32_t> items(n);
    for (size_t i = n; i-- > 0;) items[i] = Pop();
    Push(Kind::kTuple).items = std::move(items);
  }
  void PushLong(std::string_view number) {
    if (number.size() > 8) {
      Push(Kind::kLong, 0, number);
      return;
    }
    const bool is_negative = !number.empty() && (number.back() & 0x80) != 0;
    int64_t value = is_negative ? -1 : 0;
    std::memcpy(&value, number.data(), number.size());
    Push(Kind::kInt, value);
  }
  void PushGlobal() {
    const std::string module(Line());
    const std::string name = module + "." + std::string(Line());
    for (size_t i = 0; i < std::size(kKnownGlobals); ++i) {
      if (name != kKnownGlobals[i].name) continue;
      Push(Kind::kGlobal, static_cast<int64_t>(i));
      return;
    }
    Fail(
        "%s: the pickle names %s, which no file of tensors needs: it is refused, and nothing of "
        "it was run (save the checkpoint as safetensors)",
        label_.c_str(), name.c_str());
  }

  void Put(uint32_t slot) {
    if (slot >= kMostValues) FailHere("the memo has no place " + std::to_string(slot));
    if (slot >= memo_.size()) memo_.resize(size_t{slot} + 1, UINT32_MAX);
    memo_[slot] = Top();
  }
  void Get(uint32_t slot) {
    if (slot >= memo_.size() || memo_[slot] == UINT32_MAX) {
      FailHere("the memo has no value " + std::to_string(slot));
    }
    // Bounds the stack as Push does.
    if (stack_.size() >= kMostValues) FailHere("too many values");
    stack_.push_back(memo_[slot]);
  }

  void AddTo(Kind kind, const std::vector<uint32_t>& items) {
    PickledValue& target = pickle_.values[Top()];
    if (target.kind != kind) FailHere("adds items to what holds none");
    // Gets may repeat a value without a new one.
    n_items_ += items.size();
    if (n_items_ > kMostValues * 2 || (kind == Kind::kDict && items.size() % 2 != 0)) {
      FailHere("has an odd or too large number of items");
    }
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  const KnownGlobal& GlobalAt(uint32_t index, const char* expected) const {
    const PickledValue& value = Value(index);
    if (value.kind != Kind::kGlobal) FailHere(std::string("expected ") + expected);
    return kKnownGlobals[value.number];
  }
  uint64_t Count(uint32_t index, const char* what) const {
    const PickledValue& value = Value(index);
    if (value.kind != Kind::kInt || value.number < 0) {
      FailHere(std::string(what) + ": expected a whole number");
    }
    return static_cast<uint64_t>(value.number);
  }
  std::vector<uint64_t> Counts(uint32_t index, const char* what) const {
    const PickledValue& value = Value(index);
    if (value.kind != Kind::kTuple || value.items.size() > kMostDimensions) {
      FailHere(std::string(what) + ": expected a tuple of at most " +
               std::to_string(kMostDimensions) + " numbers");
    }
    std::vector<uint64_t> counts;
    for (const uint32_t item : value.items) counts.push_back(Count(item, what));
    return counts;
  }

  // ("storage", type, key, location, elements[, None]).
  void PushStorage() {
    const std::vector<uint32_t>& parts = Value(Pop()).items;
    const bool is_view = parts.size() == 6 && Value(parts[5]).kind != Kind::kOther;
    if (parts.size() < 5 || parts.size() > 6 || is_view || Value(parts[0]).text != "storage" ||
        Value(parts[2]).kind != Kind::kText) {
      FailHere("expected a storage's type, key, location and size");
    }
    const KnownGlobal& type = GlobalAt(parts[1], "the type of a storage");
    if (type.use != GlobalUse::kStorage) FailHere("expected the type of a storage");
    const auto index = static_cast<int64_t>(pickle_.storages.size());
    pickle_.storages.push_back(
        {Value(parts[2]).text, type.dtype, Count(parts[4], "size of a storage")});
    Push(Kind::kStorage, index);
  }

  void PushTensor(const std::vector<uint32_t>& parts, bool has_type) {
    if (parts.size() < (has_type ? 7 : 4) || Value(parts[0]).kind != Kind::kStorage) {
      FailHere("expected a tensor's storage, offset, size and strides");
    }
    PickledTensor tensor;
    tensor.storage = static_cast<uint32_t>(Value(parts[0]).number);
    tensor.dtype = pickle_.storages[tensor.storage].dtype;
    if (has_type) {
      if (tensor.dtype != nullptr) FailHere("a tensor has two element types");
      tensor.dtype = GlobalAt(parts[6], "an element type").dtype;
    }
    if (tensor.dtype == nullptr) FailHere("a tensor has no element type");
    tensor.offset = Count(parts[1], "offset of a tensor");
    tensor.shape = Counts(parts[2], "size of a tensor");
    tensor.strides = Counts(parts[3], "strides of a tensor");
    if (tensor.shape.size() != tensor.strides.size()) {
      FailHere("a tensor has other numbers of sizes and strides");
    }
    Push(Kind::kTensor, static_cast<int64_t>(pickle_.tensors.size()));
    pickle_.tensors.push_back(std::move(tensor));
  }

  void Reduce() {
    const uint32_t arguments = Pop();
    const KnownGlobal& called = GlobalAt(Pop(), "one of torch's globals");
    if (Value(arguments).kind != Kind::kTuple) FailHere("expected a tuple of arguments");
    const std::vector<uint32_t>& parts = Value(arguments).items;
    switch (called.use) {
      case GlobalUse::kDict:
        if (!parts.empty()) FailHere("expected an empty OrderedDict");
        Push(Kind::kDict);
        return;
      case GlobalUse::kTensor: return PushTensor(parts, false);
      case GlobalUse::kTensorOf: return PushTensor(parts, true);
      case GlobalUse::kParameter:
        if (parts.empty() || Value(parts[0]).kind != Kind::kTensor) FailHere("expected a tensor");
        stack_.push_back(parts[0]);
        return;
      case GlobalUse::kStorage:
      case GlobalUse::kElement: FailHere(std::string(called.name) + " is no function");
    }
  }

  // The state of a dictionary: `_metadata` of state_dict(), which tensors do not depend on.
  void Build() {
    Pop();
    if (Value(Top()).kind != Kind::kDict) FailHere("gives a state to what has none");
  }

  void Step(uint8_t op) {
    switch (op) {
      case 0x80:  // PROTO
        if (const uint8_t protocol = Number<uint8_t>(); protocol != 2) {
          FailHere("protocol " + std::to_string(protocol) +
                   ", expected 2, which torch.save writes");
        }
        return;
      case '.': is_done_ = true; return;
      case '(':
        if (marks_.size() >= kMostValues) FailHere("too many lists");
        marks_.push_back(static_cast<uint32_t>(stack_.size()));
        return;
      case 'N': Push(Kind::kOther); return;
      case 0x88: Push(Kind::kBool, 1); return;
      case 0x89: Push(Kind::kBool, 0); return;
      case 'J': Push(Kind::kInt, Number<int32_t>()); return;
      case 'K': Push(Kind::kInt, Number<uint8_t>()); return;
      case 'M': Push(Kind::kInt, Number<uint16_t>()); return;
      case 0x8a: return PushLong(Take(Number<uint8_t>()));
      case 'G': Take(8), Push(Kind::kOther); return;
      case 'X':
      case 'T': Push(Kind::kText, 0, Take(Number<uint32_t>())); return;
      case 'U': Push(Kind::kText, 0, Take(Number<uint8_t>())); return;
      case '}': Push(Kind::kDict); return;
      case ']': Push(Kind::kList); return;
      case ')': Push(Kind::kTuple); return;
      case 0x85:
      case 0x86:
      case 0x87: return PushTuple(op - size_t{0x84});
      case 't': {
        std::vector<uint32_t> items = PopToMark();
        Push(Kind::kTuple).items = std::move(items);
        return;
      }
      case 'c': return PushGlobal();
      case 'q': return Put(Number<uint8_t>());
      case 'r': return Put(Number<uint32_t>());
      case 'h': return Get(Number<uint8_t>());
      case 'j': return Get(Number<uint32_t>());
      case 'Q': return PushStorage();
      case 'R': return Reduce();
      case 'b': return Build();
      case 'a': return AddTo(Kind::kList, {Pop()});
      case 'e': return AddTo(Kind::kList, PopToMark());
      case 's': {
        const uint32_t value = Pop(), key = Pop();
        return AddTo(Kind::kDict, {key, value});
      }
      case 'u': return AddTo(Kind::kDict, PopToMark());
      default: FailHere(Format("opcode 0x%02x is none that torch.save writes", op));
    }
  }

  const std::string_view bytes_;
  const std::string& label_;
  size_t at_ = 0, op_at_ = 0, n_items_ = 0;
  bool is_done_ = false;
  std::vector<uint32_t> stack_, marks_, memo_;
  Pickle pickle_;
};

}  // namespace

Pickle ReadPickle(std::string_view bytes, const std::string& label) {
  return PickleReader(bytes, label).Read();
}

}  // namespace arn::convert
