// Options shared by several subcommands.
#pragma once

#include <arenite/arenite.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/arenite/device_folder.h"
#include "tools/arenite/model.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace arn::tool {

struct ModelArguments {
  std::string bundle;
  bool verify_hashes = false;
  std::string public_key;  // 64 hexadecimal digits; empty: any bundle
  std::string residency = "mapped";
};
void AddPublicKeyOption(CLI::App* app, std::string* public_key);
void AddModelOptions(CLI::App* app, ModelArguments* arguments);
Model OpenModel(const ModelArguments& arguments);

struct SessionArguments {
  std::string backend = "cpu";
  std::string device;  // must outlive the options made from it, like device_folder
  std::string device_folder = DefaultDeviceFolder();  // empty: none
  bool trust_device = false;
  std::string kv = "int8";
  std::string kv_values;   // empty: same as kv
  std::string encoder_kv;  // empty: same as kv and kv_values
  uint32_t kv_residual = 0;
  uint32_t kv_group = 0;
  std::string kv_key_axis = "default", kv_value_axis = "default";
  uint32_t context = 0;
  uint32_t prefill_chunk = 0;
  uint32_t activation_bits = 8;
  bool half_products = false;
  uint32_t threads = 0;
  uint32_t prefill_threads = 0;
  uint32_t sequences = 1;
  uint32_t kv_tokens = 0;
  std::string overflow = "stop";
  uint32_t pinned = 0;
  bool no_cache = false;
  uint32_t state_snapshots = 0;
  uint32_t snapshot_every = 0;
  std::string speculate = "none";
  std::string draft;  // the bundle of --draft; empty: none
  uint32_t max_guesses = 0;
  std::string rope = "none";  // or as --rope
};
// `context_default`: the default of --context, for the help.
void AddSessionOptions(CLI::App* app, SessionArguments* arguments, const char* context_default);
// Adds --backend, the KV type options and --prefill-chunk only, for subcommands that handle the
// rest themselves.
void AddEngineOptions(CLI::App* app, SessionArguments* arguments);
// Adds --sequences and --kv-tokens.
void AddPoolOptions(CLI::App* app, SessionArguments* arguments);
// Adds --overflow and --pinned, for subcommands whose sequences can outgrow the context.
void AddOverflowOptions(CLI::App* app, SessionArguments* arguments);
// Adds --state-snapshots and --snapshot-every.
void AddSnapshotOptions(CLI::App* app, SessionArguments* arguments);
// Adds --speculate, --draft and --guesses.
void AddSpeculateOptions(CLI::App* app, SessionArguments* arguments);
// Adds --stop, which can be repeated.
CLI::Option* AddStopOption(CLI::App* app, std::vector<std::string>* stops);
void AddNoCacheOption(CLI::App* app, SessionArguments* arguments);
// Throws Error if options exclude each other.
arn_session_options ToSessionOptions(const SessionArguments& arguments);
// Returns "f32", "f16", ..., indexed by ARN_KV_...
const std::vector<std::string>& KvTypeNames();
uint32_t KvType(const std::string& name);
// Returns "int8", or "int4/int8" if keys and values differ.
std::string KvNames(const SessionArguments& arguments);
// Returns the tokens that the model takes, extended by a rope_factor (0: not) or by --rope.
uint32_t MaxContext(float rope_factor, const Model& model);
uint32_t MaxContext(const SessionArguments& arguments, const Model& model);
// Returns --context if given, else `needed` tokens, at most MaxContext.
uint32_t ChooseContext(const SessionArguments& arguments, const Model& model, uint64_t needed);

struct PromptArguments {
  std::optional<std::string> text;
  std::optional<std::string> ids;
  std::optional<std::string> file;

  bool IsGiven() const { return text || ids || file; }
};
// `least`: number of prompt options required, 0 or 1.
void AddPromptOptions(CLI::App* app, PromptArguments* arguments, size_t least = 1);
// Returns the text of --prompt or --prompt-file. "-" reads standard input; for --prompt without its
// last line feed. REQUIRES: one of them is given. Throws Error.
std::string ReadPrompt(const PromptArguments& arguments);
// If no prompt option is given and standard input is not a terminal: as --prompt -. Returns false
// if there is no prompt then either.
bool UsePipe(PromptArguments* arguments);
// Returns the prompt's token ids, at least one. A text without tokens gives BOS. For an
// encoder-decoder: the decoder start ids, then the text, which may be absent. Throws Error.
std::vector<int32_t> PromptIds(const Model& model, const PromptArguments& arguments);

// Parses "1,2,3" (also separated by white space). Throws Error with `option` and the reason.
std::vector<int32_t> ParseIds(const std::string& text, const char* option);
// Same for numbers that are not token ids: "128,512".
std::vector<uint32_t> ParseCounts(const std::string& text, const char* option);
// Parses "300000000", "300K", "300M", "2G" (or "2GiB": powers of 1024), "2GB" (powers of 1000) to
// bytes. Throws Error with `option`.
uint64_t ParseBytes(const std::string& text, const char* option);

}  // namespace arn::tool
