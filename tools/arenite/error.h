// Error of a subcommand: a sentence that main() prints as "arenite: error: ...".
#pragma once

#include <stdexcept>

namespace arn::tool {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Ctrl-C or SIGTERM ended the command.
class Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted") {}
};

}  // namespace arn::tool
