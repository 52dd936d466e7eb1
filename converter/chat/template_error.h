// Error in a template's text, with its line.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace arn::convert {

class TemplateError : public std::runtime_error {
 public:
  TemplateError(uint32_t line, const std::string& what) : std::runtime_error(what), line_(line) {}
  uint32_t line() const { return line_; }

 private:
  uint32_t line_;
};

}  // namespace arn::convert
