// HttpServer: HTTP/1.1 by cpp-httplib, behind an interface of our own, so that one file compiles
// the library.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arn::serve {

// A part of a multipart form. Its content lives as long as the request.
struct HttpPart {
  std::string name;
  std::string_view content;
  bool is_file = false;
};

struct HttpRequest {
  std::string method, path, body;
  bool is_form = false;         // a multipart form: `parts` instead of `body`
  std::vector<HttpPart> parts;  // texts first
  std::string parameter;        // of a path that ends in a parameter
  std::function<std::string(const char* name)> header;  // "" if it is not there
  std::function<bool()> is_gone;                        // the client has closed the connection
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json", body;
  std::vector<std::pair<std::string, std::string>> headers;
  // If set: sent in parts until it returns false. Appends the next part to `out`, or nothing after
  // at most a fraction of a second, so that a client that went away is noticed.
  std::function<bool(std::string* out)> stream;
  // Called once when the stream ends in any way.
  std::function<void()> on_end;
};

struct HttpOptions {
  size_t n_connections = 64;  // answered at a time, each by a thread; more wait
  // Heap for small requests: twice what 64 clients at a time were seen to take each.
  static constexpr size_t kConnectionBytes = 32 * 1024;
  size_t max_body_bytes = 1 << 20;
  int read_seconds = 10, write_seconds = 10, keep_alive_seconds = 5;
  // PEM files for TLS; "": without. REQUIRES: both or none, and kHasTls.
  std::string certificate, key;
};

// True if the build has TLS (ARENITE_SERVE_TLS).
extern const bool kHasTls;

class HttpServer {
 public:
  using Handler = std::function<HttpReply(const HttpRequest&)>;
  // Called before a body is read. Returns true if `reply` is the answer; else its headers go into
  // the answer that follows.
  using Gate = std::function<bool(const HttpRequest&, HttpReply*)>;
  // Makes the body of an error that the server itself found: 404, 405, 413 ...
  using ErrorBody = std::function<std::string(int status, const std::string& path)>;

  // Throws tool::Error if the certificate or its key cannot be used.
  HttpServer(const HttpOptions& options, Gate gate, ErrorBody error_body);
  ~HttpServer();

  // `path` may end in "/:name".
  void Add(const std::string& method, const std::string& path, Handler handler);
  // Binds. port 0: any. Returns the port; 0 if it cannot be had.
  int Bind(const std::string& host, int port);
  // Answers until Stop(); then waits for the answers that are being sent. Returns why it ended
  // before; "" if it did not.
  std::string Listen();
  // Answers the requests in `bytes` as those of one connection that ends behind them, without a
  // socket, on the calling thread. Returns all that is sent. REQUIRES: without TLS.
  std::string Answer(std::string_view bytes);
  // Callable from any thread, once another one calls Listen() or is about to.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arn::serve
