// Typed access to a JSON object that records which keys were read, so that unread keys can be
// reported.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

// Treats a null value as absent, as transformers does. A value of an unexpected type throws
// ConvertError "LABEL: KEY: expected ..., found ...".
class ConfigReader {
 public:
  // `label` names the file (and the path inside it) in errors. `object` must outlive the reader.
  ConfigReader(const nlohmann::json& object, std::string label);

  const std::string& label() const { return label_; }
  // True if the key is present and not null. Marks it as read.
  bool Has(const std::string& key);
  // True if the key is present and null.
  bool IsNull(const std::string& key) const;
  // Returns the value, or null if absent.
  const nlohmann::json* Find(const std::string& key);

  std::optional<int64_t> Int(const std::string& key);
  // Reads an integer in [1, 2^31).
  std::optional<uint32_t> Count(const std::string& key);
  uint32_t RequiredCount(const std::string& key);
  std::optional<double> Number(const std::string& key);
  bool Bool(const std::string& key, bool fallback);
  std::optional<std::string> String(const std::string& key);
  // Reads an integer or a list of integers.
  std::vector<int64_t> IntOrList(const std::string& key);

  // Returns the keys that were never read, in order.
  std::vector<std::string> Unread() const;
  void MarkRead(const std::string& key) { read_.insert(key); }

  [[noreturn]] void FailKey(const std::string& key, const char* expected);

 private:
  const nlohmann::json& object_;
  std::string label_;
  std::set<std::string> read_;
};

}  // namespace arn::convert
