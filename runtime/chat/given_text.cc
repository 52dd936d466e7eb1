#include "runtime/chat/given_text.h"

#include <cstring>

namespace arn::chat {

void GivenText::AddSource(std::string_view text) {
  if (n_sources_ < kMaxSources) sources_[n_sources_++] = text;
}

bool GivenText::IsInSource(const char* text) const {
  for (uint32_t i = 0; i < n_sources_; ++i) {
    const std::string_view source = sources_[i];
    if (text >= source.data() && text < source.data() + source.size()) return true;
  }
  return false;
}

size_t GivenText::Run(std::string_view text, bool* is_given) const {
  if (!IsInHeap(text.data())) {
    *is_given = IsInSource(text.data());
    return text.size();
  }
  const size_t begin = static_cast<size_t>(text.data() - heap_);
  const size_t end = begin + text.size();
  *is_given = Bit(begin);
  const auto whole = static_cast<std::byte>(*is_given ? 0xFF : 0);
  size_t at = begin + 1;
  while (at < end) {
    if (at % 8 == 0 && end - at >= 8 && bits_[at / 8] == whole) {
      at += 8;
    } else if (Bit(at) == *is_given) {
      ++at;
    } else {
      break;
    }
  }
  return at - begin;
}

bool GivenText::HasGiven(std::string_view text) const {
  while (!text.empty()) {
    bool is_given = false;
    const size_t n = Run(text, &is_given);
    if (is_given) return true;
    text.remove_prefix(n);
  }
  return false;
}

void GivenText::Copy(const char* to, std::string_view from, bool otherwise) {
  if (!IsInHeap(from.data())) {
    return Set(to, from.size(), otherwise || IsInSource(from.data()));
  }
  while (!from.empty()) {
    bool is_given = false;
    const size_t n = Run(from, &is_given);
    Set(to, n, is_given);
    to += n;
    from.remove_prefix(n);
  }
}

void GivenText::Set(const char* to, size_t bytes, bool is_given) {
  size_t at = static_cast<size_t>(to - heap_);
  const size_t end = at + bytes;
  const auto set_bit = [this, is_given](size_t bit) {
    const auto mask = static_cast<std::byte>(1u << (bit % 8));
    bits_[bit / 8] = is_given ? bits_[bit / 8] | mask : bits_[bit / 8] & ~mask;
  };
  for (; at < end && at % 8 != 0; ++at) set_bit(at);
  const size_t whole = (end - at) / 8;
  std::memset(bits_ + at / 8, is_given ? 0xFF : 0, whole);
  for (at += whole * 8; at < end; ++at) set_bit(at);
}

}  // namespace arn::chat
