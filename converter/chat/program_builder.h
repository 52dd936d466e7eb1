// Collects the nodes of a program and lays them out as in runtime/bundle/chat_program.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bundle/chat_program.h"

namespace arn::convert {

class ProgramBuilder {
 public:
  // Adds a node over `children`, which must exist (skips kNoIndex), and returns its index. Throws
  // TemplateError if there are too many nodes.
  uint32_t Add(chat::Op op, uint32_t line, uint32_t a, uint32_t b, uint32_t c,
               const std::vector<uint32_t>& children = {});
  // Adds the links and returns the index of the first.
  uint32_t AddLinks(const std::vector<uint32_t>& links);
  // Returns the same index for equal texts.
  uint32_t AddString(std::string_view text);

  const chat::ProgramNode& node(uint32_t index) const { return nodes_[index]; }
  const std::string& text(uint32_t string) const { return strings_[string]; }

  std::vector<uint8_t> Finish(uint32_t root) const;

 private:
  std::vector<chat::ProgramNode> nodes_;
  std::vector<uint32_t> links_;
  std::vector<std::string> strings_;
  std::map<std::string, uint32_t, std::less<>> string_index_;
};

}  // namespace arn::convert
