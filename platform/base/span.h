// Span<T>: pointer and count. Not std::span: its bounds are unchecked in release builds, and its
// dynamic extent pulls <ranges> into every header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t count) : data_(data), count_(count) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) : data_(array), count_(N) {}  // NOLINT(google-explicit-constructor)
  // Span<T> converts to Span<const T>.
  constexpr operator Span<const T>() const { return {data_, count_}; }  // NOLINT

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + count_; }
  // REQUIRES: offset + count <= size().
  constexpr Span subspan(size_t offset, size_t count) const { return {data_ + offset, count}; }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

// UTF-8 bytes, not necessarily NUL-terminated.
struct StringView {
  const char* data = nullptr;
  size_t size = 0;

  constexpr StringView() = default;
  constexpr StringView(const char* d, size_t n) : data(d), size(n) {}
  template <size_t N>
  constexpr StringView(const char (&literal)[N]) : data(literal), size(N - 1) {}  // NOLINT
};

// Byte range [offset, offset + bytes) of a text.
struct TextSpan {
  size_t offset = 0;
  size_t bytes = 0;
};

constexpr bool operator==(StringView a, StringView b) {
  if (a.size != b.size) return false;
  for (size_t i = 0; i < a.size; ++i) {
    if (a.data[i] != b.data[i]) return false;
  }
  return true;
}

}  // namespace arn
