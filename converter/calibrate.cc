#include "converter/calibrate.h"

#include <arenite/observe.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "converter/error.h"
#include "converter/hf/json_file.h"
#include "converter/runner.h"

namespace arn::convert {
namespace {

constexpr uint32_t kWindow = 512;
constexpr uint32_t kChunk = 128;
constexpr const char* kPurpose = "calibrate";

void Run(Runner* runner, const CalibrationText& text, const VisitLogits& visit) {
  const auto n = static_cast<uint32_t>(text.ids.size());
  for (uint32_t begin = 0; begin < n; begin += text.window) {
    runner->Check(arn_session_reset(runner->session()));
    const uint32_t end = std::min(n, begin + text.window);
    for (uint32_t at = begin; at < end;) {
      const uint32_t count = std::min(kChunk, end - at);
      const float* logits = nullptr;
      runner->Check(
          arn_session_prefill_logits(runner->session(), text.ids.data() + at, count, &logits));
      visit(logits, count);
      at += count;
    }
  }
}

void Start(Runner* runner, const CalibrationText& text, uint32_t n_threads) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = text.window;
  options.prefill_chunk = kChunk;
  options.n_threads = n_threads;
  options.all_logits = 1;
  runner->Start(options);
}

struct Collector {
  Calibration calibration;
  uint32_t n_threads = 1;
  std::exception_ptr error;  // an exception must not pass through the library

  static void See(void* user, const char* tensor, const float* rows, size_t n_rows, size_t width) {
    auto* self = static_cast<Collector*>(user);
    if (self->error != nullptr) return;
    try {
      self->Add(tensor, rows, n_rows, width);
    } catch (...) {
      self->error = std::current_exception();
    }
  }

  void Add(const std::string& tensor, const float* rows, size_t n_rows, size_t width) {
    if (tensor == "embedding") return;
    std::shared_ptr<InputMoments>& moments = calibration[tensor];
    if (moments == nullptr) moments = std::make_shared<InputMoments>(width);
    moments->Add(rows, n_rows, n_threads);
  }
};

}  // namespace

CalibrationText ReadCalibrationText(const std::filesystem::path& file,
                                    const std::filesystem::path& bundle, uint32_t max_tokens) {
  const Runner runner(bundle, kPurpose);
  if (runner.info().has_tokenizer == 0) {
    Fail("%s: the checkpoint has no tokenizer to read it with", file.c_str());
  }
  if (runner.info().source_rows != 0) {
    Fail("%s: the model attends to a source, which a text does not give: it cannot be calibrated",
         file.c_str());
  }
  CalibrationText text;
  text.ids = runner.Tokenize(ReadTextFile(file));
  if (text.ids.size() < 2) {
    Fail("%s: the text has %zu tokens; calibration takes at least 2", file.c_str(),
         text.ids.size());
  }
  if (text.ids.size() > max_tokens) text.ids.resize(max_tokens);
  text.window = std::min(kWindow, runner.info().max_context);
  return text;
}

Calibration Calibrate(const std::filesystem::path& bundle, const CalibrationText& text,
                      uint32_t n_threads, const RunProgress& on_progress) {
  Runner runner(bundle, kPurpose);
  Start(&runner, text, n_threads);
  Collector collector;
  collector.n_threads =
      n_threads != 0 ? n_threads : std::max(1u, std::thread::hardware_concurrency());
  runner.Check(arn_session_observe_products(runner.session(), Collector::See, &collector));
  uint64_t done = 0;
  Run(&runner, text, [&](const float*, uint32_t n) {
    if (collector.error != nullptr) std::rethrow_exception(collector.error);
    done += n;
    on_progress(done, text.ids.size());
  });
  return std::move(collector.calibration);
}

void RunText(const std::filesystem::path& bundle, const CalibrationText& text, uint32_t n_threads,
             const VisitLogits& visit) {
  Runner runner(bundle, kPurpose);
  Start(&runner, text, n_threads);
  Run(&runner, text, visit);
}

}  // namespace arn::convert
