#include "tools/cli/input_kind.h"

#include <cstdio>
#include <filesystem>
#include <regex>
#include <string_view>
#include <vector>

#include "tools/cli/words.h"

namespace arn::cli {
namespace {

namespace fs = std::filesystem;

// Returns the first bytes of a file; "" if it cannot be read.
std::string Head(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return "";
  char bytes[64];
  const size_t n = std::fread(bytes, 1, sizeof bytes, file);
  std::fclose(file);
  return std::string(bytes, n);
}

// A safetensors file begins with the length of its JSON header, 8 bytes, and the header.
bool IsSafetensors(const std::string& head) { return head.size() > 8 && head[8] == '{'; }

bool IsPickle(const std::string& head, const fs::path& path) {
  const std::string extension = path.extension().string();
  const bool is_named = extension == ".bin" || extension == ".pth" || extension == ".pt";
  return is_named && (head.rfind("PK", 0) == 0 || head.rfind("\x80", 0) == 0);
}

InputKind KindOfFile(const std::string& path) {
  const std::string head = Head(path);
  const auto begins = [&](std::string_view start) {
    return std::string_view(head).substr(0, start.size()) == start;
  };
  if (head.empty()) return InputKind::kEmpty;
  if (begins("ARENITE")) return InputKind::kBundle;
  if (begins("GGUF")) return InputKind::kGguf;
  if (begins("version https://git-lfs")) return InputKind::kLfsPointer;
  if (begins("<!DOCTYPE") || begins("<!doctype") || begins("<html")) return InputKind::kHtml;
  if (IsSafetensors(head)) return InputKind::kSafetensors;
  if (IsPickle(head, path)) return InputKind::kPickle;
  if (head[0] == '{' || head[0] == '[') return InputKind::kJson;
  return InputKind::kOther;
}

std::string FolderOf(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// Returns the file or folder with the nearest name beside a missing one; "" if none is near.
std::string Neighbour(const std::string& path) {
  std::error_code ignored;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(FolderOf(path), ignored)) {
    names.push_back(entry.path().filename().string());
  }
  const std::string nearest = Nearest(fs::path(path).filename().string(), names);
  if (nearest.empty()) return "";
  return fs::path(path).has_parent_path() ? (fs::path(FolderOf(path)) / nearest).string() : nearest;
}

std::string Missing(const std::string& path) {
  const std::string neighbour = Neighbour(path);
  return neighbour.empty() ? "" : "did you mean " + neighbour + "?";
}

std::string Download(const std::string& name) {
  const std::string folder = fs::path(name).filename().string();
  return "for the model of this name on Hugging Face: hf download " + name + " --local-dir " +
         folder + ", then arenite-convert " + folder;
}

constexpr const char* kLfs = "a Git LFS pointer, not the file itself: run git lfs pull there";
constexpr const char* kHtml =
    "a web page, not a model: the download failed (a login or a licence may be needed)";

}  // namespace

InputKind KindOf(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const bool has_config = fs::exists(fs::path(path) / "config.json", ignored) ||
                            fs::exists(fs::path(path) / "params.json", ignored);
    return has_config ? InputKind::kCheckpoint : InputKind::kFolder;
  }
  if (fs::exists(path, ignored)) return KindOfFile(path);
  static const std::regex hub_name("[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*");
  const std::string extension = fs::path(path).extension().string();
  const bool is_file_name = extension == ".arn" || extension == ".gguf" ||
                            extension == ".safetensors" || extension == ".json";
  const bool is_hub_name = !is_file_name && std::regex_match(path, hub_name) &&
                           !fs::is_directory(FolderOf(path), ignored);
  return is_hub_name ? InputKind::kHubName : InputKind::kMissing;
}

std::string BundleAdvice(const std::string& path) {
  switch (KindOf(path)) {
    case InputKind::kMissing: return Missing(path);
    case InputKind::kHubName: return Download(path);
    case InputKind::kFolder:
      return "give the .arn file in it, or convert a checkpoint: arenite-convert DIR -o NAME.arn";
    case InputKind::kCheckpoint:
    case InputKind::kGguf: return "convert it first: arenite-convert " + path + " -o NAME.arn";
    case InputKind::kSafetensors:
    case InputKind::kPickle:
    case InputKind::kJson:
      return "convert it first: arenite-convert " + FolderOf(path) + " -o NAME.arn";
    case InputKind::kLfsPointer: return "fetch it: git lfs pull";
    case InputKind::kHtml: return std::string("it is ") + kHtml + ": download it again";
    case InputKind::kEmpty: return "download or convert it again";
    case InputKind::kBundle: return "";
    case InputKind::kOther:
      return "give a .arn file, or convert a checkpoint: arenite-convert DIR -o NAME.arn";
  }
  return "";
}

std::string CheckpointAdvice(const std::string& path) {
  const std::string folder = FolderOf(path);
  switch (KindOf(path)) {
    case InputKind::kCheckpoint:
    case InputKind::kGguf: return "";
    case InputKind::kMissing: {
      const std::string near = Missing(path);
      return path + ": no such file or folder" + (near.empty() ? "" : "; " + near);
    }
    case InputKind::kHubName: return path + ": no such folder; " + Download(path);
    case InputKind::kFolder:
      return path +
             ": the folder has no config.json; give the folder of a Hugging Face "
             "checkpoint, or a GGUF file";
    case InputKind::kBundle: return path + ": is a bundle already; run it: arenite chat " + path;
    case InputKind::kSafetensors:
    case InputKind::kPickle:
    case InputKind::kJson:
      return path + ": is one file of a checkpoint; give its folder: arenite-convert " + folder;
    case InputKind::kLfsPointer: return path + ": " + kLfs;
    case InputKind::kHtml: return path + ": " + kHtml;
    case InputKind::kEmpty: return path + ": the file is empty: download it again";
    case InputKind::kOther:
      return path +
             ": neither a checkpoint folder nor a GGUF file; give the folder with "
             "config.json and *.safetensors";
  }
  return "";
}

}  // namespace arn::cli
