#include "tools/arenite/spill.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "CLI/CLI.hpp"
#include "tools/arenite/free_memory.h"
#include "tools/arenite/io.h"
#include "tools/arenite/options.h"

namespace arn::tool {

void AddKvFileOption(CLI::App* app, std::string* file) {
  app->add_option(
      "--kv-file", *file,
      "Keeps the KV cache in this file, so that the OS can page it out; it is deleted "
      "at the end. auto: in a file of $TMPDIR or /var/tmp if the session needs more memory "
      "than is free; auto:SIZE, as in auto:200M: if it needs more than that");
}

std::string ChooseKvFile(const std::string& given, const Model& model,
                         const arn_session_options& options, bool is_quiet) {
  const std::string limit = given.compare(0, 5, "auto:") == 0 ? given.substr(5) : "";
  if (given != "auto" && limit.empty()) return given;
  const uint64_t free_bytes = limit.empty() ? FreeMemory() : ParseBytes(limit, "--kv-file");
  const arn_memory_plan plan = model.Plan(options);
  if (plan.total_bytes <= free_bytes) return "";
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr || folder[0] == '\0') folder = "/var/tmp";  // often on disk, unlike /tmp
  const std::string file = Format("%s/arenite-kv-%ld", folder, static_cast<long>(getpid()));
  if (!is_quiet) {
    std::fprintf(stderr,
                 "KV cache of %s goes to %s, deleted at the end: only %s of memory available\n",
                 HumanBytes(plan.kv_bytes).c_str(), file.c_str(), HumanBytes(free_bytes).c_str());
  }
  return file;
}

}  // namespace arn::tool
