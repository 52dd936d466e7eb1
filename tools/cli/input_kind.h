// Recognises files that are given to the wrong command.
#pragma once

#include <string>

namespace arn::cli {

enum class InputKind {
  kMissing,     // nothing of this name
  kHubName,     // nothing of this name, and it looks like ORG/NAME on Hugging Face
  kFolder,      // without config.json
  kCheckpoint,  // a folder with config.json, or params.json
  kBundle,      // begins as a bundle does; it may be truncated
  kGguf,
  kSafetensors,
  kPickle,  // a pytorch_model.bin or .pth
  kJson,
  kLfsPointer,  // Git LFS's few lines instead of the file
  kHtml,        // a web page that was saved as the file
  kEmpty,
  kOther
};

// Looks at the name and the first bytes.
InputKind KindOf(const std::string& path);

// Returns what to do with a path that was given as a bundle and is none, such as "convert it first:
// arenite-convert DIR"; "" if there is nothing to advise.
std::string BundleAdvice(const std::string& path);

// The same for a path that was given to the converter as a checkpoint: a whole sentence. "" if it
// is a checkpoint folder or a GGUF file.
std::string CheckpointAdvice(const std::string& path);

}  // namespace arn::cli
