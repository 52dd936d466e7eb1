#include "converter/calibrate/notes.h"

#include <cinttypes>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "converter/base/error.h"
#include "converter/write/temporary_file.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReference = "calibrate";
constexpr const char* kCopy = "quantised";
constexpr const char* kMeasured = "measure";
constexpr const char* kEnd = ".";  // last word of a whole line

fs::path ListPath(const fs::path& output) { return fs::path(output) += ".calibrate.resume"; }

}  // namespace

CalibrationNotes::CalibrationNotes(const fs::path& output, const std::string& key)
    : output_(output),
      reference_(TemporaryName(output, kReference)),
      copy_(TemporaryName(output, kCopy)),
      measured_(TemporaryName(output, kMeasured)),
      keeps_(!key.empty()) {
  const fs::path path = ListPath(output);
  std::ifstream left(path);
  std::string line;
  const bool goes_on = keeps_ && std::getline(left, line) && line == key;
  while (goes_on && std::getline(left, line)) Read(line);
  if (!goes_on) Remove(output);
  if (!keeps_) return;
  std::error_code ignored;
  has_reference_ = has_reference_ && fs::is_regular_file(reference_, ignored);
  list_.open(path, std::ios::app);
  // A line that was cut off ends here.
  Write(goes_on ? "" : key);
}

CalibrationNotes::~CalibrationNotes() {
  if (!keeps_) Remove(output_);
}

void CalibrationNotes::Remove(const fs::path& output) {
  std::error_code ignored;
  for (const fs::path& path : {TemporaryName(output, kReference), TemporaryName(output, kCopy),
                               TemporaryName(output, kMeasured)}) {
    fs::remove(path, ignored);
    fs::remove(fs::path(path) += ".tmp", ignored);  // of a run that was killed while it wrote it
  }
  fs::remove(ListPath(output), ignored);
}

void CalibrationNotes::Read(const std::string& line) {
  std::istringstream words(line);
  std::string what, name, dtype, value, end;
  words >> what;
  if (what == "cost") words >> name >> dtype >> value;
  if (what == "matrix") words >> name >> value;
  if (what == "stage") words >> name;
  words >> end;
  if (end != kEnd) return;
  if (what == "reference") has_reference_ = true;
  if (what == "stage") {
    stage_ = name;
    hashes_.clear();
    is_stage_done_ = false;
  }
  if (what == "matrix") hashes_[name] = std::strtoull(value.c_str(), nullptr, 16);
  if (what == "done") is_stage_done_ = true;
  if (what == "cost") costs_[{name, dtype}] = std::strtod(value.c_str(), nullptr);
}

void CalibrationNotes::Write(const std::string& line) {
  if (!keeps_) return;
  list_ << line << std::endl;
  if (!list_) Fail("%s: cannot write", ListPath(output_).c_str());
}

void CalibrationNotes::NoteReference() {
  has_reference_ = true;
  Write(Format("reference %s", kEnd));
}

bool CalibrationNotes::IsAt(const std::string& stage) const {
  std::error_code ignored;
  return keeps_ && stage_ == stage && fs::is_regular_file(copy_, ignored);
}

void CalibrationNotes::BeginStage(const std::string& stage) {
  Write(Format("stage %s %s", stage.c_str(), kEnd));
  stage_ = stage;
  hashes_.clear();
  is_stage_done_ = false;
}

std::optional<uint64_t> CalibrationNotes::HashOf(const std::string& matrix) const {
  const auto found = hashes_.find(matrix);
  return found == hashes_.end() ? std::nullopt : std::optional<uint64_t>(found->second);
}

void CalibrationNotes::NoteMatrix(const std::string& matrix, uint64_t hash) {
  hashes_[matrix] = hash;
  Write(Format("matrix %s %" PRIx64 " %s", matrix.c_str(), hash, kEnd));
}

void CalibrationNotes::NoteStageDone() {
  is_stage_done_ = true;
  Write(Format("done %s", kEnd));
}

std::optional<double> CalibrationNotes::CostOf(const std::string& unit, DType dtype) const {
  const auto found = costs_.find({unit, DTypeName(dtype)});
  return found == costs_.end() ? std::nullopt : std::optional<double>(found->second);
}

void CalibrationNotes::NoteCost(const std::string& unit, DType dtype, double cost) {
  costs_[{unit, DTypeName(dtype)}] = cost;
  Write(Format("cost %s %s %a %s", unit.c_str(), DTypeName(dtype), cost, kEnd));
}

}  // namespace arn::convert
