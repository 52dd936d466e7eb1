// KeptStates: conversations that had to leave the session's memory, each a file of a folder, so
// that they come back without being computed, also in a server that starts later. Files are written
// by a thread of its own; the least recently used ones go when the folder is full.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tools/serve/metrics.h"

namespace arn::serve {

struct KeptLimits {
  uint64_t folder_bytes = 0;    // of all files
  uint64_t waiting_bytes = 0;   // of states that are not written yet
  uint32_t context_tokens = 0;  // of a conversation
};

class KeptStates {
 public:
  static constexpr uint32_t kMaxFiles = 256;
  // Tokens that are computed again sooner than read.
  static constexpr size_t kFewTokens = 32;

  using Bytes = std::shared_ptr<const std::vector<char>>;
  struct Found {
    uint64_t number;
    size_t n_common;  // leading tokens of the prompt
  };

  // Takes what the folder has; makes it if it is not there. `metrics` must outlive it. Throws
  // tool::Error.
  KeptStates(std::filesystem::path folder, const KeptLimits& limits, Metrics* metrics);
  ~KeptStates() { Stop(); }
  KeptStates(const KeptStates&) = delete;
  KeptStates& operator=(const KeptStates&) = delete;

  // Returns the most memory that it takes: the tokens of all files, and what waits.
  uint64_t bytes() const;

  // True if a conversation is worth a file, and its beginning is in none. Notes its use.
  bool Wants(const int32_t* ids, size_t n);
  // True if there is room for so many more bytes that wait.
  bool HasRoomFor(uint64_t bytes);
  // Keeps a conversation. Those that it goes on from are deleted once it is written. Returns at
  // once.
  void Put(std::vector<int32_t> ids, std::vector<char> state);
  // Returns the state that begins as the prompt does, the longest one.
  std::optional<Found> Find(const std::vector<int32_t>& prompt);
  // Reads it; null if it has gone. Notes its use.
  Bytes Read(uint64_t number);
  // Reads it through, so that Read() finds it in the system's cache.
  void Warm(const std::vector<int32_t>& prompt);
  // Deletes a state that cannot be used; warns of the first one.
  void Remove(uint64_t number, const std::string& why);
  // Writes what waits, and ends the thread.
  void Stop();

 private:
  struct Kept {
    uint64_t number = 0;
    std::vector<int32_t> ids;
    uint64_t bytes = 0;
    Bytes waiting;                   // not written yet
    std::vector<uint64_t> replaces;  // numbers of those that go once it is written
  };
  using Iterator = std::list<Kept>::iterator;

  std::filesystem::path PathOf(uint64_t number) const;
  void Scan();
  void Run();
  Iterator At(uint64_t number);
  // Drops the least recently used ones until the limits are kept.
  void Trim();
  void Erase(Iterator kept);
  void Warn(const std::string& problem);

  const std::filesystem::path folder_;
  const KeptLimits limits_;
  Metrics& metrics_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::list<Kept> kept_;  // the latest used first
  std::deque<uint64_t> to_write_;
  uint64_t total_bytes_ = 0, waiting_bytes_ = 0, next_number_ = 1;
  bool has_warned_ = false, is_stopping_ = false;
  std::thread thread_;
};

}  // namespace arn::serve
