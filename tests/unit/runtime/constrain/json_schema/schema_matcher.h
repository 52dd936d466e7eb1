// A compiled JSON schema and one text under it, byte by byte, for the tests.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/constrain/json_schema/compile.h"

namespace arn {

class SchemaMatcher {
 public:
  struct Options {
    bool any_order = false;
    bool any_whitespace = false;
    bool any_spelling = true;
    size_t block_bytes = size_t{1} << 20;  // of terms and tables together
    size_t table_bytes = 0;                // of them, for tables; 0: a third
    uint64_t max_steps = UINT64_MAX;
    uint64_t max_work = Terms::kAnyWork;  // of the terms
  };

  Status Compile(std::string_view schema, const Options& options) {
    const size_t bytes = options.block_bytes;
    // Not cleared: filled below.
    memory_.reset(new std::byte[bytes + 64]);
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    std::byte* const block = memory_.get() + (64 - address % 64) % 64;
    std::memset(block, 0xA5, bytes);
    const size_t table_bytes = options.table_bytes != 0 ? options.table_bytes : bytes / 3 / 64 * 64;
    arena_ = Arena({block, table_bytes});
    const size_t terms_begin = (table_bytes + 63) / 64 * 64;
    terms_ = Terms::Create({block + terms_begin, bytes - terms_begin});
    if (terms_ == nullptr) return Status::kOutOfMemory;
    terms_->SetWork(options.max_work);
    // A copy that is gone when the texts are read.
    const auto copy = std::make_unique<char[]>(schema.size());
    std::memcpy(copy.get(), schema.data(), schema.size());
    Status status = CompileJsonSchema(
        {copy.get(), schema.size()},
        {options.any_order, options.any_whitespace, options.any_spelling, options.max_steps},
        terms_, &arena_, &diag_, &root_);
    std::memset(copy.get(), 0, schema.size());
    if (status == Status::kOk) status = terms_->Resolve(root_, &diag_);
    state_ = root_;
    return status;
  }
  const char* error() const { return diag_.text(); }

  void Reset() { state_ = root_; }
  bool Step(uint8_t byte) {
    Term next = terms_->Derive(state_, byte);
    if (terms_->failed()) {
      const Term roots[] = {root_, state_};
      terms_->Collect(roots);
      next = terms_->Derive(state_, byte);
    }
    state_ = next;
    return !terms_->failed() && state_ != kNothing;
  }
  bool CanEnd() const { return state_ != kNothing && terms_->IsNullable(state_); }
  bool CanFollow(uint8_t byte) {
    const Term before = state_;
    const bool can = Step(byte);
    state_ = before;
    return can;
  }
  // Whether the whole text is valid. *offset: where it first is not.
  bool Accepts(std::string_view text, size_t* offset = nullptr) {
    Reset();
    size_t at = 0;
    bool is_open = true;
    while (at < text.size() && is_open) {
      is_open = Step(static_cast<uint8_t>(text[at]));
      if (is_open) ++at;
    }
    if (offset != nullptr) *offset = at;
    return is_open && CanEnd();
  }

  uint64_t table_bytes() const { return arena_.used_bytes(); }
  uint64_t term_bytes() const { return terms_->used_bytes(); }
  const char* failure() const { return terms_->FailureText(); }
  bool failed() const { return terms_->failed(); }

 private:
  std::unique_ptr<std::byte[]> memory_;
  Arena arena_;
  Terms* terms_ = nullptr;
  Term root_ = kNothing;
  Term state_ = kNothing;
  Diag diag_;
};

}  // namespace arn
