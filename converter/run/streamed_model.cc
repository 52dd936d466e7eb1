#include "converter/run/streamed_model.h"

#include <arenite/observe.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "converter/base/auto_target.h"
#include "converter/base/error.h"
#include "converter/write/temporary_file.h"
#include "platform/os/pages.h"

namespace arn::convert {
namespace {

constexpr const char* kEmbedding = "embedding";  // also the name of a tied output head

// A run announces the matrices of the experts that it chooses only.
bool IsExpert(const std::string& name) { return name.find(".experts.") != std::string::npos; }

}  // namespace

arn_session_options AllLogitsSession(uint32_t n_tokens, uint32_t n_threads) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = n_tokens;
  options.prefill_chunk = n_tokens;
  options.n_threads = n_threads;
  options.all_logits = 1;
  return options;
}

StreamedModel::Pages::~Pages() { ReleasePages(bytes); }

StreamedModel::StreamedModel(ConvertOptions convert, const std::filesystem::path& temporary,
                             const std::string& purpose)
    : convert_([&] {
        convert.output = temporary;
        convert.formats = {DType::kF32, DType::kF32, DType::kF32, AutoTarget(), {}};
        convert.no_tokenizer = convert.no_chat_template = convert.no_matrices = true;
        convert.make_prefix = nullptr;
        convert.make_self_test = nullptr;
        convert.find_reply_format = nullptr;
        convert.check = nullptr;
        convert.quantized = nullptr;
        convert.signing_key = nullptr;
        convert.resume = nullptr;
        return std::move(convert);
      }()) {
  const TemporaryFile file(temporary);
  const ConvertResult result = Convert(convert_, {});
  for (const StoredMatrix& matrix : result.matrices) {
    matrices_.emplace(matrix.name, matrix);
    total_ += uint64_t{matrix.weight.rows} * matrix.weight.cols;
  }
  ReadFrame(file.path(), result.file_bytes);
  packer_.emplace(convert_);
  runner_.emplace(convert_.folder, pages_.bytes.data(), result.file_bytes, purpose);
}

void StreamedModel::ReadFrame(const std::filesystem::path& path, uint64_t bytes) {
  const Result<Span<std::byte>> reserved = ReservePages(bytes);
  if (!reserved.ok()) throw std::bad_alloc();
  pages_.bytes = reserved.value();
  std::vector<std::pair<uint64_t, uint64_t>> holes;  // file ranges
  for (const auto& [name, matrix] : matrices_) {
    holes.emplace_back(matrix.file_offset, matrix.file_offset + matrix.weight.bytes);
  }
  holes.emplace_back(bytes, bytes);
  std::sort(holes.begin(), holes.end());
  std::ifstream file(path, std::ios::binary);
  uint64_t at = 0;
  for (const auto& [begin, end] : holes) {
    file.seekg(static_cast<std::streamoff>(at));
    file.read(reinterpret_cast<char*>(pages_.bytes.data() + at),
              static_cast<std::streamsize>(begin - at));
    if (!file) Fail("%s: cannot read", path.c_str());
    at = end;
  }
}

Span<std::byte> StreamedModel::BytesOf(const StoredMatrix& matrix) const {
  return pages_.bytes.subspan(matrix.file_offset, matrix.weight.bytes);
}

void StreamedModel::Fill(const std::string& name) {
  const StoredMatrix& matrix = matrices_.at(name);
  packer_->PackTo(name, std::max(1u, convert_.n_threads), BytesOf(matrix).data());
  done_ += uint64_t{matrix.weight.rows} * matrix.weight.cols;
  on_progress_(name, std::min(done_, total_), total_);
}

void StreamedModel::Drop(const std::string& name) {
  if (TrimPages(BytesOf(matrices_.at(name))) != Status::kOk) {
    Fail("internal error: the memory of %s cannot be released", name.c_str());
  }
}

void StreamedModel::Reach(const std::string& name) {
  if (!held_.empty()) Drop(held_);
  held_.clear();
  if (is_learning_) {
    announced_.insert(name);
  } else {
    Fill(name);
  }
  held_ = name;
}

// Nothing may be thrown through the library.
void StreamedModel::OnMatmul(void* user, const char* tensor, const float*, size_t, size_t,
                             const float*, size_t) {
  auto* self = static_cast<StreamedModel*>(user);
  if (self->failure_) return;
  try {
    self->Reach(tensor);
  } catch (...) {
    self->failure_ = std::current_exception();
    (void)arn_session_cancel(self->runner_->session());
  }
}

const float* StreamedModel::Prefill(const int32_t* ids, uint32_t n) {
  const float* logits = nullptr;
  const arn_status status = arn_session_prefill_logits(runner_->session(), ids, n, &logits);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  runner_->Check(status);
  return logits;
}

const float* StreamedModel::Run(const std::vector<int32_t>& ids, uint32_t n_threads,
                                const OnProgress& on_progress) {
  on_progress_ = on_progress;
  const auto n = static_cast<uint32_t>(ids.size());
  const arn_session_options options = AllLogitsSession(n, n_threads);
  if (runner_->Plan(options).repacked_bytes != 0) {
    for (const auto& [name, matrix] : matrices_) Fill(name);
    runner_->Start(options);
    return Prefill(ids.data(), n);
  }
  runner_->Start(options);
  runner_->Check(arn_session_observe_matmuls(runner_->session(), OnMatmul, this));
  // One token through zeros, which are dropped, too: a system may have no page for all of them.
  is_learning_ = true;
  Prefill(ids.data(), 1);
  runner_->Check(arn_session_reset(runner_->session()));
  if (!held_.empty()) Drop(held_);
  is_learning_ = false;
  for (const auto& [name, matrix] : matrices_) {
    if (!IsExpert(name) && (announced_.count(name) == 0 || name == kEmbedding)) Fill(name);
  }
  held_ = kEmbedding;
  const float* logits = Prefill(ids.data(), n);
  Drop(held_);
  return logits;
}

}  // namespace arn::convert
