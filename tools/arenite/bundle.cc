// arenite bundle: a patch between two versions of a bundle, and its application.
#include <fstream>
#include <memory>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/io.h"
#include "tools/arenite/options.h"
#include "tools/bundle/bundle_patch.h"

namespace arn::tool {
namespace {

struct PatchArguments {
  std::string old_path, new_path, patch, output, public_key;
};

// Where a signed bundle has "ARNSEAL" and its key (docs/bundle-format.md#the-signature).
constexpr size_t kSealOffset = 64, kKeyOffset = 88, kKeyBytes = 32;

// Returns the key that the file says it is signed with, in hexadecimal; "" if it is not.
std::string StatedKey(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kKeyOffset + kKeyBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!file || head.compare(kSealOffset, 7, "ARNSEAL") != 0) return "";
  std::string hex;
  for (const char byte : head.substr(kKeyOffset)) {
    hex += Format("%02x", static_cast<unsigned char>(byte));
  }
  return hex;
}

// Opens the file with all of its hashes checked, and its signature if it has one.
void CheckBundle(const std::string& path, const std::string& public_key) {
  ModelArguments model;
  model.bundle = path;
  model.verify_hashes = true;
  model.public_key = public_key.empty() ? StatedKey(path) : public_key;
  OpenModel(model);
}

int Diff(const PatchArguments& arguments) {
  const bundle::PatchSizes sizes =
      bundle::WritePatch(arguments.old_path, arguments.new_path, arguments.output);
  Print(Format("%s: %s for a bundle of %s, of which %s are in %s\n", arguments.output.c_str(),
               HumanBytes(sizes.patch_bytes).c_str(), HumanBytes(sizes.new_bytes).c_str(),
               HumanBytes(sizes.copied_bytes).c_str(), arguments.old_path.c_str()));
  return 0;
}

int Patch(const PatchArguments& arguments) {
  const bundle::PatchSizes sizes =
      bundle::ApplyPatch(arguments.old_path, arguments.patch, arguments.output,
                         [&](const std::string& path) { CheckBundle(path, arguments.public_key); });
  Print(Format("%s: %s\n", arguments.output.c_str(), HumanBytes(sizes.new_bytes).c_str()));
  return 0;
}

}  // namespace

std::vector<Command> AddBundle(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("bundle", "Patches from one version of a bundle to another");
  sub->require_subcommand(1);
  const auto diff = std::make_shared<PatchArguments>(), patch = std::make_shared<PatchArguments>();
  CLI::App* diffs = sub->add_subcommand("diff", "Writes what makes one bundle of another");
  diffs->add_option("OLD", diff->old_path, "Bundle that users have")->required();
  diffs->add_option("NEW", diff->new_path, "Bundle that they should get")->required();
  diffs->add_option("-o,--output", diff->output, "Patch to write")->required();
  diffs->footer(
      "Blocks of 16 KiB that both have are not in the patch. Example:\n"
      "  arenite bundle diff model-1.arn model-2.arn -o model-1-2.patch");
  CLI::App* patches = sub->add_subcommand("patch", "Makes the new bundle of the old and a patch");
  patches->add_option("OLD", patch->old_path, "Bundle that the patch was made for")->required();
  patches->add_option("PATCH", patch->patch, "File of bundle diff")->required();
  patches->add_option("-o,--output", patch->output, "Bundle to write, which may be OLD")
      ->required();
  AddPublicKeyOption(patches, &patch->public_key);
  patches->footer(
      "Hashes are checked, and a signature if there is one, before the file gets its name. "
      "Example:\n"
      "  arenite bundle patch model.arn model-1-2.patch -o model.arn");
  return {{diffs, [diff] { return Diff(*diff); }}, {patches, [patch] { return Patch(*patch); }}};
}

}  // namespace arn::tool
