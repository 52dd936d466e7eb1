// --resume of --calibrate and --bits: what an interrupted run has finished, and the files with it.
//
// Beside the output lies OUTPUT.calibrate.resume, a text: a line with the key of the conversion,
// then one for each thing that is finished. A matrix counts only if its bytes have the hash of its
// line, and a line only if it is whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "platform/base/dtype.h"

namespace arn::convert {

class CalibrationNotes {
 public:
  // Reads what an interrupted run of the same key has left beside `output`, and removes what one of
  // another key has. Empty key: nothing is kept; the destructor removes the files.
  CalibrationNotes(const std::filesystem::path& output, const std::string& key);
  ~CalibrationNotes();
  CalibrationNotes(const CalibrationNotes&) = delete;
  CalibrationNotes& operator=(const CalibrationNotes&) = delete;

  // The checkpoint in f32, and the copy in which matrices are replaced as they are quantised.
  const std::filesystem::path& reference() const { return reference_; }
  const std::filesystem::path& copy() const { return copy_; }
  // The bundle that --bits measures, which is not kept.
  const std::filesystem::path& measured() const { return measured_; }

  bool has_reference() const { return has_reference_; }
  void NoteReference();

  // True if the copy is that of this stage. A new stage forgets the matrices of the one before.
  bool IsAt(const std::string& stage) const;
  void BeginStage(const std::string& stage);
  // Returns the hash of the bytes of a matrix of the stage, if it is quantised.
  std::optional<uint64_t> HashOf(const std::string& matrix) const;
  void NoteMatrix(const std::string& matrix, uint64_t hash);
  // True if no more matrices of the stage will be quantised.
  bool is_stage_done() const { return is_stage_done_; }
  void NoteStageDone();

  // Returns what a unit of --bits costs in a type, if it is measured.
  std::optional<double> CostOf(const std::string& unit, DType dtype) const;
  void NoteCost(const std::string& unit, DType dtype, double cost);

  // Removes all files of a calibration for `output`.
  static void Remove(const std::filesystem::path& output);

 private:
  void Read(const std::string& line);
  void Write(const std::string& line);

  const std::filesystem::path output_, reference_, copy_, measured_;
  const bool keeps_;
  std::ofstream list_;
  bool has_reference_ = false, is_stage_done_ = false;
  std::string stage_;
  std::map<std::string, uint64_t> hashes_;
  std::map<std::pair<std::string, std::string>, double> costs_;  // by unit and type
};

}  // namespace arn::convert
