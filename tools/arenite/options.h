// Options that several subcommands share.
#pragma once

#include <arenite/arenite.h>

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/arenite/model.h"

namespace arn::tool {

struct ModelArguments {
  std::string bundle;
  bool verify_hashes = false;
  std::string public_key;  // 64 hexadecimal digits; empty: any bundle
};
void AddModelOptions(CLI::App* app, ModelArguments* arguments);
Model OpenModel(const ModelArguments& arguments);

struct SessionArguments {
  std::string backend = "cpu";
  std::string device, device_folder;  // outlive the options made of them
  bool trust_device = false;
  std::string kv = "int8";
  std::string kv_values;  // empty: as kv
  uint32_t kv_residual = 0;
  uint32_t kv_group = 0;
  uint32_t context = 0;
  uint32_t prefill_chunk = 0;
  uint32_t threads = 0;
  uint32_t prefill_threads = 0;
  uint32_t sequences = 1;
  uint32_t kv_tokens = 0;
  std::string overflow = "stop";
  uint32_t pinned = 0;
  bool no_cache = false;
};
// `context_default`: what --context is when it is not given, for the help.
void AddSessionOptions(CLI::App* app, SessionArguments* arguments, const char* context_default);
// --backend, the options of KV types and --prefill-chunk only, for those who have their own way
// with the rest.
void AddEngineOptions(CLI::App* app, SessionArguments* arguments);
// --sequences and --kv-tokens.
void AddPoolOptions(CLI::App* app, SessionArguments* arguments);
// --overflow and --pinned: for those whose sequences can outgrow the context.
void AddOverflowOptions(CLI::App* app, SessionArguments* arguments);
// --stop, which can be given several times.
CLI::Option* AddStopOption(CLI::App* app, std::vector<std::string>* stops);
void AddNoCacheOption(CLI::App* app, SessionArguments* arguments);
// Throws Error when options exclude each other.
arn_session_options ToSessionOptions(const SessionArguments& arguments);
// "f32", "f16", "int8", "int4", "int2": by ARN_KV_...
const std::vector<std::string>& KvTypeNames();
uint32_t KvType(const std::string& name);
// "int8", or "int4/int8" when keys and values differ.
std::string KvNames(const SessionArguments& arguments);
// --context as it was given, else `needed` tokens or, when the model has less, all that it has.
uint32_t ChooseContext(const SessionArguments& arguments, const Model& model, uint64_t needed);

struct PromptArguments {
  std::optional<std::string> text;
  std::optional<std::string> ids;
  std::optional<std::string> file;
};
// `least`: how many of them must be given, 0 or 1.
void AddPromptOptions(CLI::App* app, PromptArguments* arguments, size_t least = 1);
// The prompt's token ids, at least one. A text of which the tokenizer makes nothing is the token
// that begins a sequence. Of a model with a source: what its sequences begin with, then the text,
// which may be absent. Throws Error.
std::vector<int32_t> PromptIds(const Model& model, const PromptArguments& arguments);

// "1,2,3" (also separated by white space). Throws Error that names `option` and what is wrong.
std::vector<int32_t> ParseIds(const std::string& text, const char* option);
// The same for numbers that are no token ids: "128,512".
std::vector<uint32_t> ParseCounts(const std::string& text, const char* option);
// "300000000", "300K", "300M", "2G" (powers of 1024) to bytes. Throws Error that names `option`.
uint64_t ParseBytes(const std::string& text, const char* option);

}  // namespace arn::tool
