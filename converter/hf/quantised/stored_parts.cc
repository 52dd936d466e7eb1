#include "converter/hf/quantised/stored_parts.h"

#include <algorithm>
#include <cinttypes>
#include <memory>
#include <utility>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"

namespace arn::convert {
namespace {

bool HasNameEnd(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

StoredParts::StoredParts(const nlohmann::json& keys, const std::string& label,
                         Checkpoint* checkpoint, std::vector<std::string>* warnings)
    : keys_(keys),
      config_(keys, label),
      method_(config_.String("quant_method").value_or("bitsandbytes")),
      checkpoint_(checkpoint),
      warnings_(warnings) {}

void StoredParts::RefuseOtherKeys(std::initializer_list<const char*> harmless) {
  for (const char* key : harmless) config_.MarkRead(key);
  std::vector<std::string> unknown;
  for (const std::string& key : config_.Unread()) {
    if (!config_.IsNull(key)) unknown.push_back(key);
  }
  if (unknown.empty()) return;
  std::string listed;
  for (const std::string& key : unknown) listed += (listed.empty() ? "" : ",") + key;
  Fail(
      "%s: unknown keys of method %s: %s (if they do not change how weights are stored: "
      "--ignore-config-keys %s)",
      config_.label().c_str(), method_.c_str(), JoinNames(unknown, 20).c_str(), listed.c_str());
}

std::vector<std::string> StoredParts::NamesBefore(const std::string& end) const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : checkpoint_->entries()) {
    if (HasNameEnd(name, end)) names.push_back(name.substr(0, name.size() - end.size()));
  }
  return names;
}

const Checkpoint::Entry& StoredParts::Need(const std::string& name,
                                           const std::string& beside) const {
  const Checkpoint::Entry* entry = Find(name);
  if (entry != nullptr) return *entry;
  const Checkpoint::Entry* other = Find(beside);
  Fail("%s: tensor %s has no %s beside it, which method %s needs",
       other == nullptr ? config_.label().c_str() : other->file->path().c_str(), beside.c_str(),
       name.c_str(), method_.c_str());
}

void StoredParts::LeaveOut(const std::string& end) {
  for (const std::string& name : NamesBefore(end)) checkpoint_->Remove(name + end);
}

void StoredParts::Add(const std::string& name, std::vector<uint64_t> shape, QuantisedGrid grid,
                      const std::vector<std::string>& parts) {
  SourceTensor tensor;
  tensor.name = name;
  tensor.dtype = "F32";
  tensor.shape = std::move(shape);
  Add(std::make_unique<GridTensor>(std::move(tensor), method_, std::move(grid)), parts);
}

void StoredParts::Add(std::unique_ptr<DecodedTensor> tensor,
                      const std::vector<std::string>& parts) {
  const TensorFile* file = Find(parts.front())->file;
  checkpoint_->AddDecoded(std::move(tensor), file, parts);
}

void FailPart(const Checkpoint::Entry& entry, const std::string& problem) {
  Fail("%s: tensor %s: %s", entry.file->path().c_str(), entry.tensor->name.c_str(),
       problem.c_str());
}

void CheckType(const Checkpoint::Entry& entry, std::initializer_list<const char*> types) {
  std::string expected;
  for (const char* type : types) {
    if (entry.tensor->dtype == type) return;
    expected += (expected.empty() ? "" : " or ") + std::string(type);
  }
  FailPart(entry, "expected type " + expected + ", found " + entry.tensor->dtype);
}

void CheckShape(const Checkpoint::Entry& entry, const std::vector<uint64_t>& shape) {
  if (entry.tensor->shape == shape) return;
  FailPart(entry,
           "expected shape " + ShapeText(shape) + ", found " + ShapeText(entry.tensor->shape));
}

void CheckMatrix(const Checkpoint::Entry& entry) {
  const std::vector<uint64_t>& shape = entry.tensor->shape;
  const auto is_side = [](uint64_t n) { return n > 0 && n < uint64_t{1} << 31; };
  if (shape.size() == 2 && is_side(shape[0]) && is_side(shape[1])) return;
  FailPart(entry, "expected a matrix, found shape " + ShapeText(shape));
}

void CheckScales(const Checkpoint::Entry& entry) {
  if (IsScale(*entry.tensor)) return;
  FailPart(entry, "expected scales of type F32, F16, BF16, F8_E4M3, U8 or F8_E8M0, found " +
                      entry.tensor->dtype);
}

std::vector<int64_t> ReadWhole(const Checkpoint::Entry& entry, uint64_t most) {
  CheckType(entry, {"I32", "I64"});
  const uint64_t count = entry.tensor->elements();
  if (count > most) {
    FailPart(entry, Format("expected at most %" PRIu64 " numbers, found shape %s", most,
                           ShapeText(entry.tensor->shape).c_str()));
  }
  std::vector<int64_t> numbers(count);
  if (entry.tensor->dtype == "I64") {
    entry.file->Read(entry.tensor->offset, numbers.data(), count * sizeof(int64_t));
    return numbers;
  }
  std::vector<int32_t> narrow(count);
  entry.file->Read(entry.tensor->offset, narrow.data(), count * sizeof(int32_t));
  std::copy(narrow.begin(), narrow.end(), numbers.begin());
  return numbers;
}

float ReadOneNumber(const Checkpoint::Entry& entry) {
  if (!Checkpoint::IsFloat(*entry.tensor) || entry.tensor->elements() != 1) {
    FailPart(entry, "expected one float, found " + entry.tensor->dtype + " of shape " +
                        ShapeText(entry.tensor->shape));
  }
  float value = 0.0f;
  Checkpoint::ReadFloats(entry, 0, 1, &value);
  return value;
}

std::vector<uint32_t> ReadGroupIndices(const Checkpoint::Entry& entry, uint64_t cols,
                                       uint64_t groups) {
  CheckShape(entry, {cols});
  std::vector<uint32_t> indices;
  for (const int64_t index : ReadWhole(entry, cols)) {
    if (index == -1) return {};
    if (index < 0 || static_cast<uint64_t>(index) >= groups) {
      FailPart(entry, Format("the group at [%zu] is %" PRId64 ", expected 0 to %" PRIu64,
                             indices.size(), index, groups - 1));
    }
    indices.push_back(static_cast<uint32_t>(index));
  }
  return indices;
}

}  // namespace arn::convert
