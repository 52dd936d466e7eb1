// Runs scenarios of the C API under the fault shim, each in a process of its own, for the n-th call
// of each class of calls, and writes one line of JSON for each scenario, class, error and mode.
//
// usage: trust_subject FOLDER MOST [SCENARIO...]
// MOST: runs of a line, spread over its calls; 0: one for every call.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/trust/fault_control.h"
#include "tests/trust/scenario_parts.h"

namespace arn::test {
namespace {

constexpr unsigned kSeconds = 60;  // of a run; longer is a hang

struct Fault {
  const char* class_name;
  uint64_t fault_class;
  const char* error_name;
  uint64_t error;
  bool can_last;       // the error makes sense for all calls from one on
  arn_status allowed;  // of a failed try; ARN_OK: it must not fail
  arn_status allowed_too;
};

constexpr Fault kFaults[] = {
    {"memory", kFaultMemory, "ENOMEM", ENOMEM, true, ARN_OUT_OF_MEMORY, ARN_IO},
    {"map", kFaultMap, "ENOMEM", ENOMEM, true, ARN_OUT_OF_MEMORY, ARN_OUT_OF_MEMORY},
    {"hint", kFaultHint, "ENOMEM", ENOMEM, true, ARN_OK, ARN_OK},
    {"open", kFaultOpen, "EMFILE", EMFILE, true, ARN_IO, ARN_IO},
    {"open", kFaultOpen, "EINTR", EINTR, false, ARN_OK, ARN_OK},
    {"stat", kFaultStat, "EIO", EIO, true, ARN_IO, ARN_IO},
    {"read", kFaultRead, "EIO", EIO, true, ARN_IO, ARN_IO},
    {"read", kFaultRead, "EINTR", EINTR, false, ARN_OK, ARN_OK},
    {"read", kFaultRead, "short", kFaultShort, true, ARN_OK, ARN_OK},
    {"write", kFaultWrite, "ENOSPC", ENOSPC, true, ARN_DISK_FULL, ARN_DISK_FULL},
    {"write", kFaultWrite, "EIO", EIO, true, ARN_IO, ARN_IO},
    {"write", kFaultWrite, "EINTR", EINTR, false, ARN_OK, ARN_OK},
    {"write", kFaultWrite, "short", kFaultShort, true, ARN_OK, ARN_OK},
    {"sync", kFaultSync, "EIO", EIO, true, ARN_IO, ARN_IO},
    {"sync", kFaultSync, "ENOSPC", ENOSPC, true, ARN_DISK_FULL, ARN_DISK_FULL},
    {"sync", kFaultSync, "EINTR", EINTR, false, ARN_OK, ARN_OK},
    {"rename", kFaultRename, "EIO", EIO, true, ARN_IO, ARN_IO},
    {"rename", kFaultRename, "ENOSPC", ENOSPC, true, ARN_DISK_FULL, ARN_DISK_FULL},
    {"thread", kFaultThread, "EAGAIN", EAGAIN, true, ARN_OUT_OF_MEMORY, ARN_OUT_OF_MEMORY},
};

FaultControl* g_control = nullptr;

void Arm(const Fault& fault, uint64_t at, bool is_forever) {
  g_control->error = fault.error;
  g_control->at = at;
  g_control->is_forever = is_forever ? 1 : 0;
  g_control->calls = g_control->failures = 0;
  __atomic_store_n(&g_control->fault_class, fault.fault_class, __ATOMIC_RELEASE);
}

void Disarm() { __atomic_store_n(&g_control->fault_class, uint64_t{kFaultNone}, __ATOMIC_RELEASE); }

int64_t EntriesOf(const char* folder) {
  DIR* const open = opendir(folder);
  if (open == nullptr) return -1;
  int64_t n = 0;
  while (readdir(open) != nullptr) ++n;
  closedir(open);
  return n;
}

// What the process holds.
struct Held {
  static Held Now() {
    return {EntriesOf("/proc/self/fd"), EntriesOf("/proc/self/task"), g_control->blocks,
            g_control->mapped};
  }
  int64_t files = 0, threads = 0, blocks = 0, mapped = 0;
};

Held operator-(const Held& a, const Held& b) {
  return {a.files - b.files, a.threads - b.threads, a.blocks - b.blocks, a.mapped - b.mapped};
}

// What a run tells its parent, through a pipe.
struct Report {
  uint64_t calls = 0, failures = 0;
  uint64_t result = 0;  // a hash of Result()
  Held left;
  char problem[768] = "";
};

uint64_t HashOf(const std::string& text) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

bool IsAllowed(const Fault& fault, const Outcome& outcome) {
  if (outcome.status == fault.allowed || outcome.status == fault.allowed_too) return true;
  if (fault.fault_class != kFaultHint) return false;
  // Two requests among the hints: pages that the caller wants locked, or given back.
  return (outcome.status == ARN_OUT_OF_MEMORY && std::strstr(outcome.message, "lock") != nullptr) ||
         (outcome.status == ARN_IO &&
          std::strstr(outcome.message, "takes no unused KV") != nullptr);
}

// Returns what is wrong with a failed try, or "".
std::string Judge(const Fault& fault, const Outcome& outcome, Scenario* scenario) {
  const std::string status = arn_status_name(outcome.status);
  if (!IsAllowed(fault, outcome)) return "gives " + status + ": " + outcome.message;
  if (outcome.message[0] == '\0') return status + " without a message";
  const std::string changed = scenario->Unchanged();
  if (!changed.empty()) return changed + " after " + status + ": " + outcome.message;
  const Outcome next = scenario->Try();
  if (next.status == ARN_OK) return "";
  return std::string("the next try gives ") + arn_status_name(next.status) + ": " + next.message;
}

// Waits until no more than `threads` are listed: a join returns before the kernel removes the
// thread from /proc.
void WaitForExits(int64_t threads) {
  constexpr int kTries = 1000;
  for (int n = 0; n < kTries && EntriesOf("/proc/self/task") > threads; ++n) usleep(1000);
}

Report RunOnce(const NamedScenario& named, const std::string& folder, const Fault& fault,
               uint64_t at, bool is_forever) {
  Report report;
  const Held before = Held::Now();
  {
    const std::unique_ptr<Scenario> scenario = named.make(folder);
    scenario->SetUp();
    Arm(fault, at, is_forever);
    const Outcome outcome = scenario->Try();
    Disarm();
    report.calls = g_control->calls;
    report.failures = g_control->failures;
    std::string problem;
    if (outcome.status != ARN_OK) problem = Judge(fault, outcome, scenario.get());
    if (problem.empty()) report.result = HashOf(scenario->Result());
    std::snprintf(report.problem, sizeof report.problem, "%s", problem.c_str());
    scenario->TearDown();
    EndWork();
  }
  WaitForExits(before.threads);
  report.left = Held::Now() - before;
  return report;
}

// The same in a process of its own. A crash and a hang become problems.
Report RunApart(const NamedScenario& named, const std::string& folder, const Fault& fault,
                uint64_t at, bool is_forever) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kSeconds);
    const Report report = RunOnce(named, folder, fault, at, is_forever);
    _exit(write(ends[1], &report, sizeof report) == sizeof report ? 0 : 4);
  }
  close(ends[1]);
  Report report;
  // Not by way of the shim, which the other process has armed.
  const bool is_whole = syscall(SYS_read, ends[0], &report, sizeof report) == sizeof report;
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  Disarm();
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    std::snprintf(report.problem, sizeof report.problem, "%s: %s",
                  signal == SIGALRM ? "hangs" : "crashes", strsignal(signal));
  } else if (!is_whole || WEXITSTATUS(status) != 0) {
    std::snprintf(report.problem, sizeof report.problem, "exits with %d", WEXITSTATUS(status));
  }
  return report;
}

// Compares a run with one in which nothing failed.
std::string Compare(const Report& good, const Report& found) {
  if (found.problem[0] != '\0') return found.problem;
  if (found.result != good.result) return "the result is another";
  char text[160];
  const Held more = found.left - good.left;
  if (more.files <= 0 && more.threads <= 0 && more.blocks <= 0 && more.mapped <= 0) return "";
  std::snprintf(text, sizeof text, "leaks: %d files, %d threads, %d blocks, %d mapped bytes",
                static_cast<int>(more.files), static_cast<int>(more.threads),
                static_cast<int>(more.blocks), static_cast<int>(more.mapped));
  return text;
}

// Calls to fail: all of them, or `most`, half of them the first ones.
std::vector<uint64_t> Spread(uint64_t calls, uint64_t most) {
  std::vector<uint64_t> at;
  if (most == 0 || calls <= most) most = calls;
  const uint64_t first = calls == most ? calls : most / 2;
  for (uint64_t n = 1; n <= first; ++n) at.push_back(n);
  const uint64_t rest = most - first;
  for (uint64_t i = 1; i <= rest; ++i) at.push_back(first + (calls - first) * i / rest);
  return at;
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return out + "\"";
}

void RunLine(const NamedScenario& named, const std::string& folder, const Fault& fault,
             uint64_t most) {
  const Report good = RunApart(named, folder, fault, 0, false);
  for (const bool is_forever : {false, true}) {
    if (is_forever && !fault.can_last) continue;
    uint64_t runs = 0, failed_calls = 0;
    std::string problems;
    if (good.problem[0] != '\0') problems = Quoted(std::string("nothing fails: ") + good.problem);
    const std::vector<uint64_t> calls =
        good.problem[0] == '\0' ? Spread(good.calls, most) : std::vector<uint64_t>();
    for (const uint64_t at : calls) {
      const Report found = RunApart(named, folder, fault, at, is_forever);
      ++runs;
      failed_calls += found.failures;
      const std::string problem = Compare(good, found);
      if (problem.empty()) continue;
      if (!problems.empty()) problems += ", ";
      problems += Quoted("call " + std::to_string(at) + ": " + problem);
    }
    std::printf(
        "{\"scenario\": \"%s\", \"class\": \"%s\", \"error\": \"%s\", \"mode\": \"%s\", "
        "\"calls\": %llu, \"runs\": %llu, \"failed_calls\": %llu, \"problems\": [%s]}\n",
        named.name, fault.class_name, fault.error_name, is_forever ? "forever" : "once",
        static_cast<unsigned long long>(good.calls), static_cast<unsigned long long>(runs),
        static_cast<unsigned long long>(failed_calls), problems.c_str());
    std::fflush(stdout);
  }
}

int Main(int argc, char** argv) {
  const char* path = std::getenv(kFaultVariable);
  const int fd = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  void* const at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (argc < 3 || fd < 0 || at == MAP_FAILED) {
    std::fprintf(stderr, "usage: trust_subject FOLDER MOST [SCENARIO...], with %s\n",
                 kFaultVariable);
    return 2;
  }
  close(fd);
  g_control = static_cast<FaultControl*>(at);
  if (g_control->is_loaded == 0) {
    std::fprintf(stderr, "the fault shim is not loaded\n");
    return 2;
  }
  std::vector<NamedScenario> all = SessionScenarios();
  for (const auto& more : {TextScenarios(), SkillScenarios()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  for (const NamedScenario& named : all) {
    const bool is_named = std::any_of(argv + 3, argv + argc, [&](const char* word) {
      return std::strcmp(word, named.name) == 0;
    });
    if (argc > 3 && !is_named) continue;
    for (const Fault& fault : kFaults) {
      RunLine(named, argv[1], fault, std::strtoull(argv[2], nullptr, 10));
    }
  }
  return 0;
}

}  // namespace
}  // namespace arn::test

int main(int argc, char** argv) { return arn::test::Main(argc, argv); }
