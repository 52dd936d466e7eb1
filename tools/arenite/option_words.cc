#include "tools/arenite/option_words.h"

namespace arn::tool {
namespace {

constexpr const char* kConstraint = "Advanced: constraints";
constexpr const char* kBundle = "Advanced: bundle";
constexpr const char* kKv = "Advanced: KV cache";
constexpr const char* kBackend = "Advanced: backend";
constexpr const char* kThreads = "Advanced: threads and chunks";
constexpr const char* kDevice = "Advanced: CPUs, thermal throttling and energy";

}  // namespace

const std::vector<cli::OptionWords>& OptionWordRows() {
  static const std::vector<cli::OptionWords> rows = {
      {"--prompt-ids", "IDS", ""},
      {"--prompt-file", "FILE", ""},
      {"--encoder-ids", "IDS", ""},
      {"--features", "FILE", ""},
      {"--features-shape", "MELS,FRAMES", "Advanced: encoder input"},
      {"--file", "FILE", ""},
      {"--out", "FILE", ""},
      {"--ids", "IDS", ""},
      {"--save", "FILE", ""},
      {"--adapter", "FILE[=SCALE]", ""},
      {"--draft", "BUNDLE", ""},
      {"--restore", "FILE", ""},
      {"--output", "FILE", ""},
      {"--compare", "BUNDLE", ""},
      {"--against-kv", "TYPE", ""},
      {"--tools", "FILE", ""},
      {"--variables", "JSON", ""},
      {"--history", "FILE", ""},
      {"--fit", "BYTES", ""},
      {"--svg", "FILE", ""},
      {"--prefill", "LIST", ""},
      {"--decode", "LIST", ""},
      {"--depth", "LIST", ""},
      {"--context", "", ""},
      {"--stop", "TEXT", ""},
      {"--host", "ADDRESS", ""},
      {"--name", "NAME", ""},
      {"--api-key-file", "FILE", ""},
      {"--cors", "ORIGIN", ""},
      {"--max-body", "BYTES", ""},
      {"--query", "TEXT", ""},
      {"--prompt-name", "NAME", ""},
      {"--width", "", ""},
      {"--instruction", "TEXT", ""},
      {"--language", "NAME", ""},
      {"--format", "NAME", ""},
      {"--batch-tokens", "", "Advanced: threads and chunks"},

      {"--json-schema", "FILE", ""},
      {"--grammar", "FILE", ""},
      {"--choices", "LIST", ""},
      {"--instances", "FILE", ""},
      {"--tokenizer", "BUNDLE", ""},
      {"--any-order", "", kConstraint},
      {"--whitespace", "", kConstraint},
      {"--constraint-memory", "BYTES", kConstraint},

      {"--verify-hashes", "", kBundle},
      {"--public-key", "KEY", kBundle},
      {"--residency", "HOW", kBundle},

      {"--backend", "NAME", kBackend},
      {"--device", "NAME", kBackend},
      {"--device-folder", "DIR", kBackend},
      {"--trust-device", "", kBackend},
      {"--activation-bits", "8|16", kBackend},

      {"--kv", "TYPE", kKv},
      {"--kv-values", "TYPE", kKv},
      {"--encoder-kv", "", kKv},
      {"--kv-residual", "", kKv},
      {"--kv-group", "", kKv},
      {"--kv-key-axis", "", kKv},
      {"--kv-value-axis", "", kKv},
      {"--kv-file", "FILE|auto", kKv},
      {"--overflow", "", kKv},
      {"--pinned", "", kKv},
      {"--no-cache", "", kKv},
      {"--state-snapshots", "", kKv},
      {"--snapshot-every", "", kKv},
      {"--rope", "TYPE:FACTOR", kKv},

      {"--prefill-chunk", "", kThreads},
      {"--prefill-threads", "", kThreads},

      {"--cpus", "LIST", kDevice},
      {"--max-tokens-per-s", "", kDevice},
      {"--thermal-limit", "DEGREES", kDevice},
      {"--thermal-headroom", "", kDevice},
      {"--thermal-duty", "PERCENT", kDevice},
      {"--thermal-zone", "TEXT", kDevice},
      {"--system-root", "DIR", kDevice},
      {"--stats", "", kDevice},
  };
  return rows;
}

}  // namespace arn::tool
