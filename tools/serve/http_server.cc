#include "tools/serve/http_server.h"

#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "tools/arenite/error.h"
#include "tools/serve/accept.h"
#include "tools/serve/worker_queue.h"

#ifdef ARENITE_SERVE_TLS
#define CPPHTTPLIB_OPENSSL_SUPPORT
#endif
#define CPPHTTPLIB_LISTEN_BACKLOG 128
#define CPPHTTPLIB_TCP_NODELAY true
// The library ends for good where a connection could not be taken.
#define accept4 arn::serve::AcceptNext
#include "httplib.h"
#undef accept4

namespace arn::serve {
namespace {

// The library's pool of threads ends the process where a thread cannot be created, or where a
// connection has no memory.
class Tasks : public httplib::TaskQueue {
 public:
  Tasks(size_t n_threads, size_t capacity) : queue_(n_threads, capacity) {}
  bool enqueue(std::function<void()> task) override { return queue_.Add(std::move(task)); }
  void shutdown() override { queue_.End(); }

 private:
  WorkerQueue queue_;
};

// A connection whose bytes are all here. Its socket is one that nobody writes to: the library asks
// it whether the client is still there.
class MemoryStream : public httplib::Stream {
 public:
  MemoryStream(std::string_view in, int socket) : in_(in), socket_(socket) {}

  bool has_more() const { return !in_.empty(); }
  std::string& out() { return out_; }

  bool is_readable() const override { return has_more(); }
  bool wait_readable() const override { return true; }
  bool wait_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    const size_t n = in_.copy(to, size);
    in_.remove_prefix(n);
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, size_t size) override {
    out_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }
  time_t duration() const override { return 0; }

 private:
  std::string_view in_;
  std::string out_;
  const int socket_;
};

// Closes a connection also where it fails for lack of memory.
class Listener : public httplib::Server {
 public:
  void Answer(MemoryStream* stream) {
    bool is_closed = false;
    while (!is_closed && stream->has_more()) {
      if (!process_request(*stream, "", 0, "", 0, false, is_closed, nullptr)) return;
    }
  }

 private:
  bool process_and_close_socket(socket_t sock) override {
    const httplib::detail::scope_exit close([sock] {
      httplib::detail::shutdown_socket(sock);
      httplib::detail::close_socket(sock);
    });
    std::string remote, local;
    int remote_port = 0, local_port = 0;
    httplib::detail::get_remote_ip_and_port(sock, remote, remote_port);
    httplib::detail::get_local_ip_and_port(sock, local, local_port);
    return httplib::detail::process_server_socket(
        svr_sock_, sock, keep_alive_max_count_, keep_alive_timeout_sec_, read_timeout_sec_,
        read_timeout_usec_, write_timeout_sec_, write_timeout_usec_,
        [&](httplib::Stream& stream, bool closes, bool& is_closed) {
          return process_request(stream, remote, remote_port, local, local_port, closes, is_closed,
                                 nullptr);
        });
  }
};

HttpRequest Convert(const httplib::Request& from) {
  HttpRequest to;
  to.method = from.method;
  to.path = from.path;
  if (!from.path_params.empty()) to.parameter = from.path_params.begin()->second;
  to.header = [&from](const char* name) { return from.get_header_value(name); };
  to.is_gone = [&from] { return from.is_connection_closed(); };
  return to;
}

void SetHeaders(const HttpReply& reply, httplib::Response* out) {
  for (const auto& [name, value] : reply.headers) {
    out->headers.erase(name);
    out->set_header(name, value);
  }
}

void Send(HttpReply reply, httplib::Response* out) {
  out->status = reply.status;
  SetHeaders(reply, out);
  if (!reply.stream) {
    out->set_content(reply.body, reply.type);
    return;
  }
  out->set_chunked_content_provider(
      reply.type,
      [stream = std::move(reply.stream)](size_t, httplib::DataSink& sink) {
        std::string part;
        const bool goes_on = stream(&part);
        if (!part.empty() && !sink.write(part.data(), part.size())) return false;
        if (!goes_on) sink.done();
        return !goes_on || sink.is_writable();
      },
      [on_end = std::move(reply.on_end)](bool) {
        if (on_end) on_end();
      });
}

#ifdef ARENITE_SERVE_TLS
constexpr bool kBuiltWithTls = true;

std::unique_ptr<httplib::Server> MakeServer(const HttpOptions& options) {
  if (options.certificate.empty()) return std::make_unique<Listener>();
  auto server =
      std::make_unique<httplib::SSLServer>(options.certificate.c_str(), options.key.c_str());
  if (server->is_valid()) return server;
  throw tool::Error("--tls-certificate " + options.certificate + ", --tls-key " + options.key +
                    ": no certificate in PEM, or not its key");
}
#else
constexpr bool kBuiltWithTls = false;

std::unique_ptr<httplib::Server> MakeServer(const HttpOptions&) {
  return std::make_unique<Listener>();
}
#endif

}  // namespace

const bool kHasTls = kBuiltWithTls;

struct HttpServer::Impl {
  explicit Impl(const HttpOptions& options) : server(MakeServer(options)) {}

  const std::unique_ptr<httplib::Server> server;  // without TLS: a Listener
  std::atomic<bool> has_ended{false};             // Listen has returned
};

HttpServer::HttpServer(const HttpOptions& options, Gate gate, ErrorBody error_body)
    : impl_(std::make_unique<Impl>(options)) {
  httplib::Server& server = *impl_->server;
  const size_t n = options.n_connections;
  server.new_task_queue = [n] { return new Tasks(n, 4 * n); };
  server.set_payload_max_length(options.max_body_bytes);
  server.set_read_timeout(options.read_seconds);
  server.set_write_timeout(options.write_seconds);
  server.set_keep_alive_timeout(options.keep_alive_seconds);
  server.set_keep_alive_max_count(1000000);
  // Without SO_REUSEPORT, which is the library's own choice: a second server on a port is a
  // mistake.
  server.set_socket_options(
      [](socket_t sock) { httplib::set_socket_opt(sock, SOL_SOCKET, SO_REUSEADDR, 1); });
  server.set_pre_routing_handler(
      [gate = std::move(gate)](const httplib::Request& request, httplib::Response& response) {
        HttpReply reply;
        if (gate(Convert(request), &reply)) {
          Send(std::move(reply), &response);
          return httplib::Server::HandlerResponse::Handled;
        }
        SetHeaders(reply, &response);
        return httplib::Server::HandlerResponse::Unhandled;
      });
  server.set_error_handler([error_body = std::move(error_body)](const httplib::Request& request,
                                                                httplib::Response& response) {
    if (!response.body.empty()) return;
    response.set_content(error_body(response.status, request.path), "application/json");
  });
}

HttpServer::~HttpServer() = default;

void HttpServer::Add(const std::string& method, const std::string& path, Handler handler) {
  const auto call = [handler = std::move(handler)](const httplib::Request& request,
                                                   httplib::Response& response) {
    HttpRequest converted = Convert(request);
    converted.body = request.body;
    converted.is_form = request.is_multipart_form_data();
    for (const auto& [name, field] : request.form.fields) {
      converted.parts.push_back({name, field.content, /*is_file=*/false});
    }
    for (const auto& [name, file] : request.form.files) {
      converted.parts.push_back({name, file.content, /*is_file=*/true});
    }
    Send(handler(converted), &response);
  };
  if (method == "GET") {
    impl_->server->Get(path, call);
  } else {
    impl_->server->Post(path, call);
  }
}

int HttpServer::Bind(const std::string& host, int port) {
  if (port == 0) return std::max(0, impl_->server->bind_to_any_port(host));
  return impl_->server->bind_to_port(host, port) ? port : 0;
}

std::string HttpServer::Listen() {
  std::string problem;
  try {
    if (!impl_->server->listen_after_bind()) problem = "no more connections can be taken";
  } catch (const std::exception& error) {
    problem = error.what();
  }
  impl_->has_ended = true;
  return problem;
}

std::string HttpServer::Answer(std::string_view bytes) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  const httplib::detail::scope_exit close([&] {
    for (const int socket : sockets) httplib::detail::close_socket(socket);
  });
  MemoryStream stream(bytes, sockets[0]);
  static_cast<Listener*>(impl_->server.get())->Answer(&stream);
  return std::move(stream.out());
}

void HttpServer::Stop() {
  // The library forgets a stop that comes before it listens.
  while (!impl_->server->is_running() && !impl_->has_ended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  impl_->server->stop();
}

}  // namespace arn::serve
