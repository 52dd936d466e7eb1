#include "converter/chat/program_builder.h"

#include <algorithm>
#include <cstring>

#include "converter/chat/template_error.h"

namespace arn::convert {
namespace {

template <typename T>
void Append(const T* items, size_t n, std::vector<uint8_t>* out) {
  if (n == 0) return;
  const auto* bytes = reinterpret_cast<const uint8_t*>(items);
  out->insert(out->end(), bytes, bytes + n * sizeof(T));
}

}  // namespace

uint32_t ProgramBuilder::Add(chat::Op op, uint32_t line, uint32_t a, uint32_t b, uint32_t c,
                             const std::vector<uint32_t>& children) {
  uint32_t height = 0;
  for (const uint32_t child : children) {
    if (child != chat::kNoIndex) height = std::max(height, nodes_[child].height + 1u);
  }
  if (height > chat::kMaxHeight) {
    throw TemplateError(line, "nested deeper than " + std::to_string(chat::kMaxHeight) + " levels");
  }
  nodes_.push_back(
      {static_cast<uint8_t>(op), static_cast<uint8_t>(height), /*zero=*/0, line, a, b, c});
  return static_cast<uint32_t>(nodes_.size() - 1);
}

uint32_t ProgramBuilder::AddLinks(const std::vector<uint32_t>& links) {
  const auto first = static_cast<uint32_t>(links_.size());
  links_.insert(links_.end(), links.begin(), links.end());
  return first;
}

uint32_t ProgramBuilder::AddString(std::string_view text) {
  const auto found = string_index_.find(text);
  if (found != string_index_.end()) return found->second;
  const auto index = static_cast<uint32_t>(strings_.size());
  strings_.emplace_back(text);
  string_index_.emplace(text, index);
  return index;
}

std::vector<uint8_t> ProgramBuilder::Finish(uint32_t root) const {
  std::string text;
  std::vector<chat::ProgramString> strings;
  for (const std::string& s : strings_) {
    strings.push_back({static_cast<uint32_t>(text.size()), static_cast<uint32_t>(s.size())});
    text += s;
  }
  chat::ProgramHeader header = {};
  std::memcpy(header.magic, chat::kProgramMagic, sizeof header.magic);
  header.version = chat::kProgramVersion;
  header.n_nodes = static_cast<uint32_t>(nodes_.size());
  header.n_links = static_cast<uint32_t>(links_.size());
  header.n_strings = static_cast<uint32_t>(strings.size());
  header.text_bytes = static_cast<uint32_t>(text.size());
  header.root = root;
  std::vector<uint8_t> bytes;
  Append(&header, 1, &bytes);
  Append(nodes_.data(), nodes_.size(), &bytes);
  Append(links_.data(), links_.size(), &bytes);
  Append(strings.data(), strings.size(), &bytes);
  Append(text.data(), text.size(), &bytes);
  if (bytes.size() > chat::kMaxProgramBytes) {
    throw TemplateError(
        1, "the template is larger than " + std::to_string(chat::kMaxProgramBytes >> 20) + " MiB");
  }
  return bytes;
}

}  // namespace arn::convert
