// Runs the unquantised weights of a checkpoint with one matrix at a time in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/convert/convert.h"
#include "converter/run/runner.h"
#include "platform/base/span.h"

namespace arn::convert {

// Options of a session with an f32 KV cache that runs all tokens at once and keeps their logits.
// Two models compared bit by bit need the same chunks.
arn_session_options AllLogitsSession(uint32_t n_tokens, uint32_t n_threads);

// A bundle in f32 in reserved pages: everything but the matrices is there, and a matrix is packed
// from the checkpoint when the run reaches it and dropped when the run reaches the next one. So the
// memory in use is the largest matrix beside a session for the run. Matrices that the library looks
// rows up in (the embedding before the first matmul, learned positions) are there in advance.
//
// On a CPU for which the library repacks f32 matrices, which reads all of them when a session is
// created, all matrices are there twice.
class StreamedModel {
 public:
  // `elements`: how many of the matrices' elements are packed. May throw, which ends the run.
  using OnProgress =
      std::function<void(const std::string& tensor, uint64_t elements, uint64_t total)>;

  // `convert`: the conversion of the checkpoint. Ignores its output, formats and callbacks. Writes
  // and removes the file `temporary`. `purpose` is for errors. Throws ConvertError.
  StreamedModel(ConvertOptions convert, const std::filesystem::path& temporary,
                const std::string& purpose);

  // Runs the tokens in one session with an f32 KV cache, and returns the logits of all of them: [n,
  // vocab], valid until the model is destroyed. Call once. Throws ConvertError.
  const float* Run(const std::vector<int32_t>& ids, uint32_t n_threads,
                   const OnProgress& on_progress);

 private:
  struct Pages {
    Pages() = default;
    ~Pages();
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    Span<std::byte> bytes;
  };

  static void OnMatmul(void* user, const char* tensor, const float*, size_t, size_t, const float*,
                       size_t);
  // Copies the written file, except for the matrices.
  void ReadFrame(const std::filesystem::path& path, uint64_t bytes);
  Span<std::byte> BytesOf(const StoredMatrix& matrix) const;
  void Fill(const std::string& name);
  void Drop(const std::string& name);
  // Called when a run is about to multiply by the matrix.
  void Reach(const std::string& name);
  const float* Prefill(const int32_t* ids, uint32_t n);

  const ConvertOptions convert_;
  std::map<std::string, StoredMatrix> matrices_;
  Pages pages_;
  std::optional<MatrixPacker> packer_;
  std::optional<Runner> runner_;
  bool is_learning_ = false;
  std::set<std::string> announced_;
  std::string held_;               // matrix to drop at the next matmul; empty: none
  uint64_t done_ = 0, total_ = 0;  // elements
  OnProgress on_progress_;
  std::exception_ptr failure_;
};

}  // namespace arn::convert
