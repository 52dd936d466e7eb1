// ApiError: what a client did wrong, or why the server cannot answer, in the form of OpenAI's API.
#pragma once

#include <stdexcept>
#include <string>

namespace arn::serve {

class ApiError : public std::runtime_error {
 public:
  // param: the field of the request, "messages[0].role"; "": none.
  ApiError(int status, std::string type, const std::string& message, std::string param = "",
           std::string code = "")
      : std::runtime_error(message),
        status_(status),
        type_(std::move(type)),
        param_(std::move(param)),
        code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  // Returns the same error of another field.
  ApiError At(const std::string& param) const;
  // {"error": {"message", "type", "param", "code"}}.
  std::string Json() const;

 private:
  int status_;
  std::string type_, param_, code_;
};

// 400: a field has a value that it may not have. `message` does not repeat its name.
ApiError BadField(const std::string& param, const std::string& message);
// 413: the prompt, or what may follow it, does not fit.
ApiError TooLong(const std::string& param, const std::string& message);
// 503: the server ends, or ran out of something while it worked.
ApiError Unavailable(const std::string& message, const std::string& code);

}  // namespace arn::serve
