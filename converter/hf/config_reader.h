// Typed access to a JSON object that remembers which keys were asked for, so that what nobody
// understood can be named.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace arn::convert {

// A key whose value is null counts as absent, as in transformers. A value of another type than the
// one asked for throws ConvertError "LABEL: KEY: expected ..., found ...".
class ConfigReader {
 public:
  // `label` names the file (and the path inside it) in errors. `object` must outlive the reader.
  ConfigReader(const nlohmann::json& object, std::string label);

  const std::string& label() const { return label_; }
  // Whether the key is there and not null. Counts as asking for it.
  bool Has(const std::string& key);
  // The value, or null when absent.
  const nlohmann::json* Find(const std::string& key);

  std::optional<int64_t> Int(const std::string& key);
  // A whole number in [1, 2^31).
  std::optional<uint32_t> Count(const std::string& key);
  uint32_t RequiredCount(const std::string& key);
  std::optional<double> Number(const std::string& key);
  bool Bool(const std::string& key, bool fallback);
  std::optional<std::string> String(const std::string& key);
  // A whole number or a list of them.
  std::vector<int64_t> IntOrList(const std::string& key);

  // Keys that were never asked for, in order.
  std::vector<std::string> Unread() const;
  void MarkRead(const std::string& key) { read_.insert(key); }

  [[noreturn]] void Wrong(const std::string& key, const char* expected);

 private:
  const nlohmann::json& object_;
  std::string label_;
  std::set<std::string> read_;
};

}  // namespace arn::convert
