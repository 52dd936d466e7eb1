// Checks what a request must be before its body is read.
#include <algorithm>

#include "tools/cli/format.h"
#include "tools/serve/api.h"

namespace arn::serve {
namespace {

// Takes the same time wherever two texts of one length differ.
bool IsSame(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  int differ = 0;
  for (size_t i = 0; i < a.size(); ++i) differ |= a[i] ^ b[i];
  return differ == 0;
}

// "http://[::1]:8080" -> "[::1]:8080".
std::string HostOf(const std::string& origin) {
  const size_t at = origin.find("://");
  return at == std::string::npos ? origin : origin.substr(at + 3);
}

bool IsLocalName(std::string host) {
  const size_t port = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (port != std::string::npos && (bracket == std::string::npos || port > bracket)) {
    host.resize(port);
  }
  return host.empty() || host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

void Deny(int status, const char* message, const char* code, HttpReply* reply) {
  const ApiError error(status, "invalid_request_error", message, "", code);
  reply->status = status;
  reply->body = error.Json();
}

}  // namespace

bool Api::HasKey(const HttpRequest& request) const {
  if (options_.keys.empty()) return true;
  static const std::string kScheme = "Bearer ";
  const std::string given = request.header("Authorization");
  if (given.compare(0, kScheme.size(), kScheme) != 0) return false;
  const std::string key = given.substr(kScheme.size());
  bool has = false;
  for (const std::string& one : options_.keys) has = IsSame(key, one) || has;
  return has;
}

bool Api::Gate(const HttpRequest& request, HttpReply* reply) const {
  const std::string origin = request.header("Origin"), host = request.header("Host");
  // A name that leads here by way of another site's DNS.
  if (options_.is_local && options_.keys.empty() && !IsLocalName(host)) {
    Deny(403, "the Host header does not name this machine, on which alone the server listens",
         "bad_host", reply);
    return true;
  }
  const bool may_cross =
      !options_.cors.empty() && (options_.cors == "*" || options_.cors == origin);
  if (!origin.empty() && may_cross) {
    reply->headers = {{"Access-Control-Allow-Origin", options_.cors}, {"Vary", "Origin"}};
  } else if (!origin.empty() && HostOf(origin) != host) {
    Deny(403, "pages of other origins may not use this server: see --cors", "bad_origin", reply);
    return true;
  }
  if (request.method == "OPTIONS") {
    reply->status = 204;
    reply->headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    const std::string asked = request.header("Access-Control-Request-Headers");
    if (!asked.empty()) reply->headers.emplace_back("Access-Control-Allow-Headers", asked);
    reply->headers.emplace_back("Access-Control-Max-Age", "600");
    return true;
  }
  const bool is_page = request.path == "/" || request.path == "/speech";
  if (is_page || request.path == "/health") return false;
  if (!HasKey(request)) {
    Deny(401, "an API key is needed: Authorization: Bearer KEY", "invalid_api_key", reply);
    reply->headers.emplace_back("WWW-Authenticate", "Bearer");
    return true;
  }
  return false;
}

std::string Api::ErrorBody(int status, const std::string& path) {
  std::string message = cli::Format("the request failed with status %d", status);
  std::string code = "http_error";
  if (status == 404) {
    message = "there is no endpoint " + path + " for this method";
    code = "not_found";
  } else if (status == 413) {
    message = "the body is larger than the server reads (--max-body)";
    code = "body_too_large";
  } else if (status == 400) {
    message = "the HTTP request cannot be read";
  }
  return ApiError(status, "invalid_request_error", message, "", code).Json();
}

}  // namespace arn::serve
