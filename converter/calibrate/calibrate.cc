#include "converter/calibrate/calibrate.h"

#include <arenite/observe.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "converter/base/auto_target.h"
#include "converter/base/error.h"
#include "converter/quantize/input_moments.h"
#include "converter/run/runner.h"
#include "converter/write/temporary_file.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

constexpr uint32_t kWindow = 512;
constexpr uint32_t kChunk = 128;
constexpr size_t kBundleAlign = 64;
constexpr const char* kCalibrate = "calibrate";

void Start(Runner* runner, const CalibrationText& text, uint32_t n_threads) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = text.window;
  options.prefill_chunk = kChunk;
  options.n_threads = n_threads;
  options.all_logits = 1;
  runner->Start(options);
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

std::shared_ptr<std::byte> ReadBundle(const std::filesystem::path& path, uint64_t bytes) {
  const auto capacity = static_cast<size_t>(AlignUp(bytes, kBundleAlign));
  std::shared_ptr<std::byte> data(
      static_cast<std::byte*>(std::aligned_alloc(kBundleAlign, capacity)), std::free);
  if (data == nullptr) throw std::bad_alloc();
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(data.get()), static_cast<std::streamsize>(bytes))) {
    Fail("%s: cannot read", path.c_str());
  }
  return data;
}

// Records the inputs of the output head's matmul during a run.
struct HeadRows {
  std::vector<float> values;

  static void Observe(void* user, const char* tensor, const float* rows, size_t n_rows,
                      size_t width, const float*, size_t) {
    if (MatmulName(tensor) != kHeadMatmul) return;
    auto* self = static_cast<HeadRows*>(user);
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
    convert.formats.target = AutoTarget();
    const TemporaryFile file(options.temporary);
    const ConvertResult result = Convert(convert, {});
    data_ = ReadBundle(file.path(), result.file_bytes);
    quantized_.emplace(options.temporary, data_.get(), result.file_bytes, kCalibrate);
    packer_.emplace(convert);
    for (const MatrixInfo& info : ListMatrices(convert)) {
      if (info.name.find(".experts.") != std::string::npos) experts_.push_back(info.name);
    }
    for (const StoredMatrix& stored : result.matrices) {
      const DType dtype = stored.weight.dtype;
      // Leaves out the embedding: as a lookup table it stays as close to its weights as possible.
      if (!IsInteger(dtype) || dtype == DType::kTernary) continue;
      if (stored.name != "embedding") stored_.emplace(stored.name, stored);
    }
  }

  CalibratedMatrices Run() {
    const uint64_t repacked = quantized_->Plan(LockstepSession(options_.text)).repacked_bytes;
    is_exchanged_ = options_.in_order && repacked == 0;
    std::vector<const Runner*> bundles = {&reference_};
    if (is_exchanged_) bundles.push_back(&*quantized_);
    RunInLockstep(bundles, options_.text, experts_, Threads(), [&](const Matmul& matmul) {
      if (matmul.tensor == kHeadMatmul || stored_.count(matmul.tensor) == 0) return;
      Quantize(matmul.tensor, MomentsOf(matmul));
    });
    if (stored_.count(kHeadMatmul) != 0) Quantize(kHeadMatmul, MomentsOfHead());
    result_.bundle_ = data_;
    return std::move(result_);
  }

 private:
  uint32_t Threads() const { return std::max(1u, options_.convert.n_threads); }

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
      if (!is_pair || seen[w].sums == nullptr || exact[w].sums == nullptr) continue;
      moments.AddSums(seen[w].rows, seen[w].sums, exact[w].sums, n, matmul.out_width, Threads());
    }
    return moments;
  }

  // Reads all tokens through the model, quantised except for its head.
  InputMoments MomentsOfHead() {
    const uint32_t hidden = reference_.info().hidden;
    InputMoments moments(hidden);
    HeadRows exact, seen;
    for (const auto& [runner, rows] : {std::pair(&reference_, &exact), {&*quantized_, &seen}}) {
      if (runner != &reference_ && !is_exchanged_) continue;
      rows->values.reserve(size_t{kChunk} * hidden);
      Start(runner, options_.text, Threads());
      runner->Check(arn_session_observe_matmuls(runner->session(), HeadRows::Observe, rows));
    }
    ForEachChunk(options_.text, [&](const int32_t* ids, uint32_t n, bool starts_window) {
      RunChunk(reference_, ids, n, starts_window);
      if (is_exchanged_) RunChunk(*quantized_, ids, n, starts_window);
      const float* rows = exact.values.data();
      moments.Add(is_exchanged_ ? seen.values.data() : rows, is_exchanged_ ? rows : nullptr, n,
                  Threads());
    });
    return moments;
  }

  // Overwrites the matrix in the bundle with the quantised one.
  void Quantize(const std::string& name, const InputMoments& moments) {
    const StoredMatrix& stored = stored_.at(name);
    if (moments.n_rows() != 0 && result_.matrices_.count(name) == 0) {
      const std::vector<std::byte> packed =
          packer_->Pack(name, InputModel(moments, stored.weight.rows), Threads());
      std::byte* to = data_.get() + stored.file_offset;
      std::memcpy(to, packed.data(), packed.size());
      Weight weight = stored.weight;
      weight.data = to;
      result_.matrices_.emplace(name, weight);
    }
    on_progress_(++n_done_, stored_.size());
  }

  const CalibrateOptions& options_;
  const RunProgress& on_progress_;
  Runner reference_;
  std::optional<Runner> quantized_;
  std::shared_ptr<std::byte> data_;
  std::optional<MatrixPacker> packer_;
  std::vector<std::string> experts_;
  std::map<std::string, StoredMatrix> stored_;  // matrices to quantise
  bool is_exchanged_ =
      false;  // true if the quantised bundle runs too, each matrix replaced once it is quantised
  uint64_t n_done_ = 0;
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
  Runner runner(bundle, kCalibrate);
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
  runner.Start(options);
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
  Runner runner(bundle, kCalibrate);
  Start(&runner, text, n_threads);
  ForEachChunk(text, [&](const int32_t* ids, uint32_t n, bool starts_window) {
    visit(RunChunk(runner, ids, n, starts_window), n);
  });
}

}  // namespace arn::convert
