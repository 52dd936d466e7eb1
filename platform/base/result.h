// Result<T>: a value, or the Status that explains its absence. Defines the two propagation macros.
#pragma once

#include <new>
#include <utility>

#include "platform/base/status.h"

namespace arn {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : status_(Status::kOk) { new (&value_) T(std::move(value)); }  // NOLINT
  // kOk without a value becomes kInternal, so that ok() always means "has a value".
  Result(Status status)  // NOLINT(google-explicit-constructor)
      : status_(status == Status::kOk ? Status::kInternal : status) {}
  Result(Result&& other) noexcept : status_(other.status_) {
    if (ok()) new (&value_) T(std::move(other.value_));
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result& operator=(Result&&) = delete;
  ~Result() {
    if (ok()) value_.~T();
  }

  bool ok() const { return status_ == Status::kOk; }
  Status status() const { return status_; }
  T& value() { return value_; }
  const T& value() const { return value_; }

 private:
  Status status_;
  union {
    T value_;
  };
};

}  // namespace arn

#define ARN_CONCAT_INNER(a, b) a##b
#define ARN_CONCAT(a, b) ARN_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expr` (a Status) is not kOk.
#define ARN_TRY(expr)                                                \
  do {                                                               \
    const ::arn::Status arn_try_status = (expr);                     \
    if (arn_try_status != ::arn::Status::kOk) return arn_try_status; \
  } while (false)

// ARN_ASSIGN(auto x, SomethingReturningResult()): declares x, or returns the error.
#define ARN_ASSIGN(decl, expr) ARN_ASSIGN_IMPL(ARN_CONCAT(arn_result_, __LINE__), decl, expr)
#define ARN_ASSIGN_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                     \
  if (!tmp.ok()) return tmp.status();    \
  decl = std::move(tmp.value())
