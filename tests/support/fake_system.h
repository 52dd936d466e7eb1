// A temporary folder that imitates the files the runtime reads from a device's /sys.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace arn::test {

class FakeSystem {
 public:
  FakeSystem() {
    std::string name = (std::filesystem::temp_directory_path() / "arn_system_XXXXXX").string();
    EXPECT_NE(nullptr, mkdtemp(name.data()));
    root_ = name;
  }
  ~FakeSystem() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  const char* root() const { return root_.c_str(); }

  // `path` is relative to /sys.
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = Full(path);
    std::filesystem::create_directories(full.parent_path());
    if (std::filesystem::is_directory(full)) std::filesystem::remove_all(full);
    std::ofstream(full, std::ios::binary | std::ios::trunc) << text;
  }
  void Write(const std::string& path, int64_t value) { Write(path, std::to_string(value) + "\n"); }
  void Remove(const std::string& path) { std::filesystem::remove_all(Full(path)); }
  // Replaces the file with a directory, so that reading it fails even for root.
  void MakeUnreadable(const std::string& path) {
    Remove(path);
    std::filesystem::create_directories(Full(path));
  }

  void Cpu(uint32_t cpu, const std::string& file, const std::string& text) {
    Write("devices/system/cpu/cpu" + std::to_string(cpu) + "/" + file, text);
  }
  void Zone(uint32_t zone, const std::string& type, const std::string& millicelsius) {
    Write(ZonePath(zone, "type"), type + "\n");
    Write(ZonePath(zone, "temp"), millicelsius + "\n");
  }
  static std::string ZonePath(uint32_t zone, const std::string& file) {
    return "class/thermal/thermal_zone" + std::to_string(zone) + "/" + file;
  }

 private:
  std::filesystem::path Full(const std::string& path) const { return root_ + "/sys/" + path; }

  std::string root_;
};

}  // namespace arn::test
