// Options of arenite serve.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/arenite/options.h"

namespace arn::tool {

// Longest body with sound, four minutes of it with 16 bits a sample, or with images.
inline constexpr const char* kMediaBody = "8M";

struct ServeArguments {
  ModelArguments model;
  SessionArguments session;
  std::string host = "127.0.0.1";
  uint32_t port = 8080;
  std::string name;
  uint32_t queue = 32;
  uint32_t connections = 64;
  std::string max_body;  // empty: the default
  uint32_t max_tokens = 0;
  uint32_t time_limit = 600;
  std::string api_key_file;
  std::string cors;
  std::string certificate, key;  // of TLS
  std::string constraint_memory = "4M";
  std::string embedder, reranker, transcriber;
  std::string state_folder;
  std::string state_bytes = "1G";
  uint32_t save_after = 5;
  std::vector<std::string> adapters;
};

// Adds the options, and the text of --help.
void AddServeOptions(CLI::App* sub, ServeArguments* arguments);

}  // namespace arn::tool
