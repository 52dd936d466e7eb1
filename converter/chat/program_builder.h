// Collects the nodes of a program and lays them out as runtime/bundle/chat_program.h says.
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
  // A node over `children`, which are there already (kNoIndex among them counts for nothing). Its
  // index. Throws TemplateError when it is too high.
  uint32_t Add(chat::Op op, uint32_t line, uint32_t a, uint32_t b, uint32_t c,
               const std::vector<uint32_t>& children = {});
  // The index of the first of these links.
  uint32_t AddLinks(const std::vector<uint32_t>& links);
  // Equal texts have one index.
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
