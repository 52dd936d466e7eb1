#include "converter/calibrate/calibrate.h"

#include <arenite/observe.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "converter/base/auto_target.h"
#include "converter/base/error.h"
#include "converter/quantize/input_moments.h"
#include "converter/run/runner.h"
#include "converter/write/temporary_file.h"
#include "platform/base/hash.h"

namespace arn::convert {
namespace {

constexpr uint32_t kWindow = 512;
constexpr uint32_t kChunk = 128;
constexpr const char* kCalibrate = "calibrate";

arn_session_options ChunkSession(const CalibrationText& text, uint32_t n_threads) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = text.window;
  options.prefill_chunk = kChunk;
  options.n_threads = n_threads;
  options.all_logits = 1;
  return options;
}

// visit(first token, tokens, is first of a window)
template <typename Visit>
void ForEachChunk(const CalibrationText& text, const Visit& visit) {
  for (size_t w = 0; w < text.n_windows(); ++w) {
    const size_t begin = w * text.window, end = begin + text.TokensOf(w);
    for (size_t at = begin; at < end; at += kChunk) {
      visit(text.ids.data() + at, static_cast<uint32_t>(std::min<size_t>(kChunk, end - at)),
            at == begin);
    }
  }
}

// Returns the logits of a chunk, [n, vocab].
const float* RunChunk(const Runner& runner, const int32_t* ids, uint32_t n, bool starts_window) {
  if (starts_window) runner.Check(arn_session_reset(runner.session()));
  const float* logits = nullptr;
  runner.Check(arn_session_prefill_logits(runner.session(), ids, n, &logits));
  return logits;
}

// Records the inputs of the output head's matmul during a run.
struct HeadRows {
  explicit HeadRows(WrittenBundle* of) : bundle(of) {}
  WrittenBundle* bundle;
  std::vector<float> values;

  static void Observe(void* user, const char* tensor, const float* rows, size_t n_rows,
                      size_t width, const float*, size_t) {
    auto* self = static_cast<HeadRows*>(user);
    self->bundle->Forget();
    if (MatmulName(tensor) != kHeadMatmul) return;
    self->values.resize(std::min(n_rows * width, self->values.capacity()));
    std::copy_n(rows, self->values.size(), self->values.data());
  }
};

}  // namespace

class Calibrator {
 public:
  Calibrator(const CalibrateOptions& options, const RunProgress& on_progress)
      : options_(options), on_progress_(on_progress), reference_(options.reference, kCalibrate) {
    ConvertOptions convert = options.convert;
    convert.output = options.temporary;
    convert.make_prefix = nullptr;
    convert.quantized = nullptr;
    convert.resume = nullptr;
    convert.formats.target = AutoTarget();
    const std::vector<StoredMatrix> matrices = MakeCopy(convert);
    // The mapping shows what is written to the file, also to one without a name.
    std::optional<TemporaryFile> file;
    if (options.notes == nullptr) file.emplace(options.temporary);
    copy_ = std::make_shared<WrittenBundle>(options.temporary, kCalibrate);
    copy_file_.open(options.temporary, std::ios::in | std::ios::out | std::ios::binary);
    packer_.emplace(convert);
    for (const MatrixInfo& info : ListMatrices(convert)) {
      if (info.name.find(".experts.") != std::string::npos) experts_.push_back(info.name);
    }
    for (const StoredMatrix& stored : matrices) {
      const DType dtype = stored.weight.dtype;
      // Leaves out the embedding: as a lookup table it stays as close to its weights as possible.
      if (!IsInteger(dtype) || IsTernary(dtype)) continue;
      if (stored.name != "embedding") stored_.emplace(stored.name, stored);
    }
    result_.bundle_ = copy_;
  }

  CalibratedMatrices Run() {
    if (TakeNoted()) return std::move(result_);
    const uint64_t repacked = copy_->runner().Plan(LockstepSession(options_.text)).repacked_bytes;
    is_exchanged_ = options_.in_order && repacked == 0;
    if (LacksLayers()) RunLayers();
    if (stored_.count(kHeadMatmul) != 0) {
      if (!IsQuantised(kHeadMatmul)) Quantise(kHeadMatmul, MomentsOfHead());
      Count(kHeadMatmul);
    }
    if (options_.notes != nullptr) options_.notes->NoteStageDone();
    return std::move(result_);
  }

 private:
  uint32_t Threads() const { return std::max(1u, options_.convert.n_threads); }

  bool IsQuantised(const std::string& name) const { return result_.matrices_.count(name) != 0; }

  void Count(const std::string& name) {
    counted_.insert(name);
    on_progress_(counted_.size(), stored_.size());
  }

  // Writes the quantised copy, unless the one of an interrupted run is there. Returns where its
  // matrices are.
  std::vector<StoredMatrix> MakeCopy(const ConvertOptions& convert) {
    if (options_.notes != nullptr && options_.notes->IsAt(options_.stage)) {
      ConvertOptions frame = convert;
      frame.output = options_.frame;
      frame.no_matrices = true;
      const TemporaryFile file(frame.output);
      const ConvertResult result = Convert(frame, {});
      std::error_code ignored;
      if (std::filesystem::file_size(convert.output, ignored) == result.file_bytes) {
        return result.matrices;
      }
    }
    const ConvertResult result = Convert(convert, options_.events);
    if (options_.notes != nullptr) options_.notes->BeginStage(options_.stage);
    return result.matrices;
  }

  // Takes the matrices that are noted and have the noted bytes. Returns true if they are all.
  bool TakeNoted() {
    if (options_.notes == nullptr) return false;
    bool is_whole = true;
    for (const auto& [name, stored] : stored_) {
      const std::optional<uint64_t> hash = options_.notes->HashOf(name);
      if (!hash) continue;
      if (Xxh64(BytesOf(stored), stored.weight.bytes) == *hash) {
        Take(stored);
      } else {
        is_whole = false;
      }
      copy_->Forget();
    }
    return is_whole && options_.notes->is_stage_done();
  }

  const std::byte* BytesOf(const StoredMatrix& stored) const {
    return copy_->bytes().data() + stored.file_offset;
  }

  void Take(const StoredMatrix& stored) {
    Weight weight = stored.weight;
    weight.data = BytesOf(stored);
    result_.matrices_.emplace(stored.name, weight);
  }

  bool LacksLayers() const {
    return std::any_of(stored_.begin(), stored_.end(), [&](const auto& entry) {
      return entry.first != kHeadMatmul && !IsQuantised(entry.first);
    });
  }

  void RunLayers() {
    std::vector<const Runner*> bundles = {&reference_.runner()};
    if (is_exchanged_) bundles.push_back(&copy_->runner());
    const LockstepMemory memory = {std::filesystem::path(options_.temporary) += ".sessions",
                                   options_.session_bytes};
    RunInLockstep(bundles, options_.text, experts_, memory, Threads(), [&](const Matmul& matmul) {
      reference_.Forget();
      copy_->Forget();
      if (matmul.tensor == kHeadMatmul || stored_.count(matmul.tensor) == 0) return;
      if (!IsQuantised(matmul.tensor)) Quantise(matmul.tensor, MomentsOf(matmul));
      Count(matmul.tensor);
    });
  }

  // Pairs a window with its exact rows only if both hold all tokens of the window; otherwise the
  // rows may belong to different tokens.
  InputMoments MomentsOf(const Matmul& matmul) const {
    InputMoments moments(matmul.width);
    const std::vector<MatmulRows>& exact = matmul.rows.front();
    const std::vector<MatmulRows>& seen = matmul.rows.back();
    for (size_t w = 0; w < seen.size(); ++w) {
      const size_t n = options_.text.TokensOf(w);
      const bool is_pair = is_exchanged_ && exact[w].n_rows == n && seen[w].n_rows == n;
      moments.Add(seen[w].rows, is_pair ? exact[w].rows : nullptr, seen[w].n_rows, Threads());
      if (is_pair && seen[w].sums != nullptr && exact[w].sums != nullptr) {
        moments.AddSums(seen[w].rows, seen[w].sums, exact[w].sums, n, matmul.out_width, Threads());
      }
      matmul.forget(w);
    }
    return moments;
  }

  // Reads all tokens through the model, quantised except for its head.
  InputMoments MomentsOfHead() {
    const uint32_t hidden = reference_.runner().info().hidden;
    InputMoments moments(hidden);
    HeadRows exact(&reference_), seen(copy_.get());
    for (HeadRows* rows : {&exact, &seen}) {
      if (rows == &seen && !is_exchanged_) continue;
      rows->values.reserve(size_t{kChunk} * hidden);
      Runner& runner = rows->bundle->runner();
      runner.Start(ChunkSession(options_.text, Threads()));
      runner.Check(arn_session_observe_matmuls(runner.session(), HeadRows::Observe, rows));
    }
    ForEachChunk(options_.text, [&](const int32_t* ids, uint32_t n, bool starts_window) {
      RunChunk(reference_.runner(), ids, n, starts_window);
      reference_.Forget();
      if (is_exchanged_) RunChunk(copy_->runner(), ids, n, starts_window);
      copy_->Forget();
      const float* rows = exact.values.data();
      moments.Add(is_exchanged_ ? seen.values.data() : rows, is_exchanged_ ? rows : nullptr, n,
                  Threads());
    });
    reference_.runner().Stop();
    copy_->runner().Stop();
    return moments;
  }

  // Overwrites the matrix in the copy with the quantised one.
  void Quantise(const std::string& name, InputMoments moments) {
    if (moments.n_rows() == 0) return;
    const StoredMatrix& stored = stored_.at(name);
    const InputModel inputs(std::move(moments), stored.weight.rows);
    const std::vector<std::byte> packed = packer_->Pack(name, inputs, Threads());
    copy_file_.seekp(static_cast<std::streamoff>(stored.file_offset));
    copy_file_.write(reinterpret_cast<const char*>(packed.data()),
                     static_cast<std::streamsize>(packed.size()));
    copy_file_.flush();
    if (!copy_file_) {
      Fail("%s: cannot write: %s", options_.temporary.c_str(), std::strerror(errno));
    }
    Take(stored);
    if (options_.notes == nullptr) return;
    options_.notes->NoteMatrix(name, Xxh64(packed.data(), packed.size()));
  }

  const CalibrateOptions& options_;
  const RunProgress& on_progress_;
  WrittenBundle reference_;
  std::shared_ptr<WrittenBundle> copy_;
  std::fstream copy_file_;
  std::optional<MatrixPacker> packer_;
  std::vector<std::string> experts_;
  std::map<std::string, StoredMatrix> stored_;  // matrices to quantise
  bool is_exchanged_ =
      false;  // true if the quantised bundle runs too, each matrix replaced once it is quantised
  std::set<std::string> counted_;
  CalibratedMatrices result_;
};

CalibrationText ReadCalibrationText(const NamedText& named, const std::filesystem::path& bundle,
                                    uint32_t max_tokens) {
  const Runner runner(bundle, kCalibrate);
  if (runner.info().has_tokenizer == 0) {
    Fail("%s: the text cannot be tokenized, the checkpoint has no tokenizer", named.file.c_str());
  }
  if (runner.info().encoder_rows != 0) {
    Fail("%s: a model with an encoder cannot be calibrated on a text", named.file.c_str());
  }
  CalibrationText text;
  text.ids = runner.Tokenize(named.text);
  if (text.ids.size() < 2) {
    Fail("%s: the text has %zu tokens, calibration needs at least 2", named.file.c_str(),
         text.ids.size());
  }
  if (text.ids.size() > max_tokens) text.ids.resize(max_tokens);
  text.window = std::min(kWindow, runner.info().max_context);
  return text;
}

CalibrationText WriteOwnText(const std::filesystem::path& bundle, uint32_t n_tokens,
                             uint32_t n_threads) {
  constexpr uint32_t kOwnWindow = 128;
  WrittenBundle written(bundle, kCalibrate);
  Runner& runner = written.runner();
  const arn_model_info& info = runner.info();
  if (info.encoder_rows != 0) {
    Fail("%s: a model with an encoder cannot write a text to calibrate on", bundle.c_str());
  }
  CalibrationText text;
  text.window = std::min(kOwnWindow, info.max_context);
  const uint32_t n = std::max(n_tokens / text.window, 1u);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = text.window;
  options.max_sequences = n;
  options.n_threads = n_threads;
  written.Start(options);
  arn_session* session = runner.session();
  std::vector<uint32_t> sequences(n);
  std::vector<int32_t> drawn(n);
  text.ids.resize(size_t{n} * text.window);
  const auto put = [&](uint32_t at) {
    for (uint32_t s = 0; s < n; ++s) text.ids[size_t{s} * text.window + at] = drawn[s];
  };
  for (uint32_t s = 0; s < n; ++s) {
    sequences[s] = s;
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = 1.0f;
    sampling.seed = s + 1;
    runner.Check(arn_session_select(session, s));
    runner.Check(arn_session_set_sampling(session, &sampling));
    drawn[s] = info.bos_id >= 0
                   ? info.bos_id
                   : static_cast<int32_t>(uint64_t{info.vocab} * (2 * s + 1) / (2 * n));
  }
  put(0);
  runner.Check(arn_session_step(session, sequences.data(), drawn.data(), n));
  for (uint32_t at = 1; at < text.window; ++at) {
    runner.Check(arn_session_decode_batch(session, sequences.data(), n, drawn.data()));
    put(at);
  }
  return text;
}

CalibratedMatrices Calibrate(const CalibrateOptions& options, const RunProgress& on_progress) {
  return Calibrator(options, on_progress).Run();
}

void RunText(const std::filesystem::path& bundle, const CalibrationText& text, uint32_t n_threads,
             const VisitLogits& visit) {
  WrittenBundle written(bundle, kCalibrate);
  written.Start(ChunkSession(text, n_threads));
  ForEachChunk(text, [&](const int32_t* ids, uint32_t n, bool starts_window) {
    const float* logits = RunChunk(written.runner(), ids, n, starts_window);
    written.Forget();
    visit(logits, n);
  });
}

}  // namespace arn::convert
