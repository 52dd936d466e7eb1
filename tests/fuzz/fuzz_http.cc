// libFuzzer: what a client sends to arenite serve, from the parser of HTTP to the tokens of a small
// model. Without sockets. The first byte selects what the rest is: 0: the bytes of a connection;
// else a request, and edits of its JSON body. Each answer must be whole, and none of them 500.
#include <arenite/arenite.h>

#include <cstdlib>
#include <filesystem>

#include "converter/convert/convert.h"
#include "converter/run/reply_format.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_edits.h"
#include "tests/support/tiny_checkpoint.h"
#include "tools/serve/api.h"
#include "tools/serve/sampling_fields.h"

namespace arn::test {
namespace {

using nlohmann::json;

constexpr int kMaxEdits = 5;
constexpr size_t kMaxInput = 1 << 16;
constexpr uint32_t kContext = 384;

constexpr const char* kTemplate =
    "{%- if tools %}{{ '<|im_start|>system\\n' + (tools | tojson) + '<|im_end|>\\n' }}{% endif %}"
    "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content }}"
    "{%- if m.tool_calls %}{%- for call in m.tool_calls %}{{ '\\n<tool_call>\\n{\"name\": \"' + "
    "call.function.name + '\", \"arguments\": ' + (call.function.arguments | tojson) + "
    "'}\\n</tool_call>' }}{% endfor %}{% endif %}{{ '<|im_end|>\\n' }}{% endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

std::string WriteBundle(const TempFolder& folder) {
  TinyCheckpoint checkpoint;
  checkpoint.vocab = 1024;
  checkpoint.max_context = kContext;
  WriteTinyCheckpoint(folder / "checkpoint", checkpoint);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy_file(std::filesystem::path(ARN_FABLE_MODEL) / name,
                               folder / "checkpoint" / name);
  }
  WriteFile(folder / "checkpoint/chat_template.jinja", kTemplate);
  convert::ConvertOptions options;
  options.folder = folder / "checkpoint";
  options.output = folder / "served.arn";
  options.formats.target = FindPackTarget("portable");
  options.find_reply_format = [](const std::filesystem::path& bundle) {
    return convert::ProbeReplyFormat(bundle);
  };
  convert::Convert(options, {});
  return options.output.string();
}

arn_session_options SessionOptions(const tool::Model& model) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = kContext;
  options.max_sequences = 2;
  options.n_threads = 1;
  options.constraint_bytes = 1 << 20;
  serve::ReserveForRequests(model.get(), &options);
  return options;
}

// Answers requests as arenite serve does.
class Server {
 public:
  Server()
      : model_(WriteBundle(folder_), ARN_MODEL_OPTIONS_INIT),
        prompter_(model_),
        scheduler_(model_, SessionOptions(model_), {}, &metrics_),
        api_(serve::TextServices{prompter_, scheduler_}, &metrics_, Options()),
        server_(
            Http(),
            [this](const serve::HttpRequest& request, serve::HttpReply* reply) {
              return api_.Gate(request, reply);
            },
            serve::Api::ErrorBody) {
    api_.AddTo(&server_);
  }

  std::string Answer(const std::string& bytes) { return server_.Answer(bytes); }

 private:
  static serve::ApiOptions Options() {
    serve::ApiOptions options;
    options.limits.models.base = "served";
    options.limits.n_sequences = 2;
    options.limits.max_tokens = 3;
    options.limits.time = std::chrono::seconds(20);
    return options;
  }
  static serve::HttpOptions Http() {
    serve::HttpOptions options;
    options.max_body_bytes = 1 << 15;
    return options;
  }

  const TempFolder folder_;
  const tool::Model model_;
  const serve::Prompter prompter_;
  serve::Metrics metrics_;
  serve::Scheduler scheduler_;
  serve::Api api_;
  serve::HttpServer server_;
};

struct Endpoint {
  const char *path, *body;
  int status = 200;  // of the answer to this body
};
constexpr Endpoint kEndpoints[] = {
    {"/v1/chat/completions",
     R"({"model":"served","messages":[{"role":"system","content":"Be brief."},)"
     R"({"role":"user","content":"Hi"}],"max_tokens":2,"temperature":0.5,"seed":1,"stream":true})"},
    {"/v1/chat/completions",
     R"({"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},)"
     R"({"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":)"
     R"({"name":"f","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"a","content":"2"}],)"
     R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
     R"("properties":{"x":{"type":"integer"}}}}}],"tool_choice":"auto","max_tokens":2})"},
    {"/v1/chat/completions",
     R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":4,"logprobs":true,)"
     R"("top_logprobs":2,"response_format":{"type":"json_schema","json_schema":{"name":"n",)"
     R"("schema":{"type":"object","properties":{"a":{"enum":[1,"b"]}},"required":["a"]}}}})"},
    {"/v1/completions",
     R"({"prompt":["Once","One"],"max_tokens":3,"n":2,"logprobs":1,"stop":["."],)"
     R"("top_p":0.9,"logit_bias":{"5":-100},"presence_penalty":0.5})"},
    {"/v1/completions", R"({"prompt":[5,6,7],"max_tokens":2,"ignore_eos":true})"},
    {"/v1/responses",
     R"({"input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]}],)"
     R"("instructions":"Be brief.","max_output_tokens":16,"text":{"format":{"type":"text"}}})"},
    {"/v1/responses", R"({"input":"Hi","stream":true,"max_output_tokens":16,"store":false})"},
    {"/tokenize", R"({"content":"Once upon","add_special":true,"with_pieces":true})"},
    {"/detokenize", R"({"tokens":[1,2,300]})"},
    {"/apply-template", R"({"messages":[{"role":"user","content":"Hi"}]})"},
    {"/v1/embeddings", R"({"input":"Hi"})", 501},
    {"/v1/rerank", R"({"query":"a","documents":["b"]})", 501},
};

const JsonMaterial& BodyMaterial() {
  static const JsonMaterial kMaterial = {json::parse(R"json([
    null, true, false, 0, 1, 2, 3, -1, 96, 1023, 1024, 2147483647, 4294967296,
    18446744073709551615, -9223372036854775808, 0.5, -0.5, 1e300, 1e-300, "", "a", "\u0000",
    "\ufffd", "<|im_end|>", "auto", "required", "none", "user", "assistant", "system", "tool",
    "text", "json_object", "json_schema", "regex", "grammar", "served", "low", "high", [], {}, [[]],
    [{}], ["a", "b"], [1, 2], {"a": 1}, {"type": "text", "text": "b"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    {"type": "function", "function": {"name": "f"}}, {"type": "json_object"},
    {"include_usage": true}, {"type": "string", "pattern": "^(a|b)*$"}, {"$ref": "#"},
    {"5": 100, "x": 1}])json"),
                                         {"model",
                                          "messages",
                                          "role",
                                          "content",
                                          "tools",
                                          "tool_choice",
                                          "tool_calls",
                                          "stream",
                                          "stream_options",
                                          "max_tokens",
                                          "max_completion_tokens",
                                          "n",
                                          "best_of",
                                          "stop",
                                          "seed",
                                          "temperature",
                                          "top_p",
                                          "top_k",
                                          "min_p",
                                          "logit_bias",
                                          "logprobs",
                                          "top_logprobs",
                                          "response_format",
                                          "presence_penalty",
                                          "frequency_penalty",
                                          "repetition_penalty",
                                          "ignore_eos",
                                          "echo",
                                          "suffix",
                                          "prompt",
                                          "reasoning_effort",
                                          "chat_template_kwargs",
                                          "parallel_tool_calls",
                                          "grammar",
                                          "json_schema",
                                          "input",
                                          "instructions",
                                          "text",
                                          "reasoning",
                                          "previous_response_id",
                                          "truncation",
                                          "user",
                                          "metadata",
                                          "service_tier",
                                          "functions",
                                          "name",
                                          "arguments",
                                          "tokens",
                                          "add_special",
                                          "parse_special"}};
  return kMaterial;
}

std::string Post(const char* path, const std::string& body) {
  return std::string("POST ") + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Returns the status of the first answer; 0 if there is none.
int StatusOf(const std::string& answer) {
  return answer.rfind("HTTP/1.1 ", 0) == 0 ? std::atoi(answer.c_str() + 9) : 0;
}

// The answer of one request that is whole.
void CheckAnswer(const std::string& answer, const std::string& request) {
  const size_t head = answer.find("\r\n\r\n");
  const int status = StatusOf(answer);
  if (status == 0 || head == std::string::npos) EndFuzzing("no answer to: " + request);
  const bool is_json = answer.find("Content-Type: application/json") < head;
  const std::string body = answer.substr(head + 4);
  if (is_json && !json::accept(body)) EndFuzzing("no JSON: " + answer + "\nto: " + request);
  if (!is_json && answer.find("text/event-stream") > head) EndFuzzing("no type: " + answer);
  if (status >= 500 && status != 501) EndFuzzing("answers " + answer + "\nto: " + request);
}

// Answers each request as it is first, so that edits begin at what is understood.
Server* NewServer() {
  auto* server = new Server;
  for (const Endpoint& endpoint : kEndpoints) {
    const std::string answer = server->Answer(Post(endpoint.path, endpoint.body));
    if (StatusOf(answer) != endpoint.status) EndFuzzing(endpoint.path + (": " + answer));
  }
  return server;
}

std::vector<std::string> HttpSeeds() {
  std::vector<std::string> seeds;
  std::string connection(1, '\0');
  for (const Endpoint& endpoint : kEndpoints) connection += Post(endpoint.path, endpoint.body);
  seeds.push_back(connection);
  const auto raw = [&](const std::string& text) { seeds.push_back(std::string(1, '\0') + text); };
  raw("GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://b\r\n\r\n");
  raw("GET /v1/models/served HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1\r\n\r\nGET /metrics "
      "HTTP/1.0\r\n"
      "\r\n");
  raw("OPTIONS /v1/status HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: "
      "POST\r\n\r\n");
  raw("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "f\r\n{\"prompt\":\"One\"}\r\n0\r\n\r\n");
  raw("POST /v1/audio/transcriptions HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"
      "Content-Length: 69\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n"
      "--b--\r\n");
  for (size_t i = 0; i < std::size(kEndpoints); ++i) {
    seeds.emplace_back(1, static_cast<char>(i + 1));
  }
  return seeds;
}

}  // namespace
}  // namespace arn::test

ARN_FUZZ_TARGET(http, arn::test::HttpSeeds) {
  static arn::test::Server* const server = arn::test::NewServer();
  if (size == 0 || size > arn::test::kMaxInput) return;
  if (data[0] == 0) {
    const std::string answer = server->Answer(std::string(data + 1, data + size));
    if (!answer.empty() && arn::test::StatusOf(answer) == 0) {
      arn::test::EndFuzzing("an answer without a status: " + answer);
    }
    if (arn::test::StatusOf(answer) == 500) arn::test::EndFuzzing(answer);
    return;
  }
  const auto& endpoint = arn::test::kEndpoints[data[0] % std::size(arn::test::kEndpoints)];
  nlohmann::json body = nlohmann::json::parse(endpoint.body);
  arn::test::Choices choices(data + 1, size - 1);
  for (int i = 0; i < arn::test::kMaxEdits && choices.left() > 0; ++i) {
    arn::test::EditJson(arn::test::BodyMaterial(), &body, &choices);
  }
  const std::string request = arn::test::Post(
      endpoint.path, body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  arn::test::CheckAnswer(server->Answer(request), request);
}
