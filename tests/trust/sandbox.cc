#include "tests/trust/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace arn::test {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

struct NamedCall {
  const char* name;
  int number;
};
#define ARN_CALL(name) \
  NamedCall { #name, SYS_##name }
constexpr NamedCall kCalls[] = {
    ARN_CALL(accept4),
    ARN_CALL(bind),
    ARN_CALL(brk),
    ARN_CALL(clock_gettime),
    ARN_CALL(clock_nanosleep),
    ARN_CALL(clone),
    ARN_CALL(clone3),
    ARN_CALL(close),
    ARN_CALL(execve),
    ARN_CALL(exit),
    ARN_CALL(exit_group),
    ARN_CALL(fadvise64),
    ARN_CALL(fchmod),
    ARN_CALL(fchmodat),
    ARN_CALL(fcntl),
    ARN_CALL(flock),
    ARN_CALL(fstat),
    ARN_CALL(fstatfs),
    ARN_CALL(fsync),
    ARN_CALL(ftruncate),
    ARN_CALL(futex),
    ARN_CALL(getcwd),
    ARN_CALL(getdents64),
    ARN_CALL(getpeername),
    ARN_CALL(getpid),
    ARN_CALL(getrandom),
    ARN_CALL(getsockname),
    ARN_CALL(getsockopt),
    ARN_CALL(gettid),
    ARN_CALL(ioctl),
    ARN_CALL(kill),
    ARN_CALL(listen),
    ARN_CALL(lseek),
    ARN_CALL(madvise),
    ARN_CALL(membarrier),
    ARN_CALL(mincore),
    ARN_CALL(mkdirat),
    ARN_CALL(mlock),
    ARN_CALL(mmap),
    ARN_CALL(mprotect),
    ARN_CALL(mremap),
    ARN_CALL(munmap),
    ARN_CALL(newfstatat),
    ARN_CALL(openat),
    ARN_CALL(ppoll),
    ARN_CALL(pread64),
    ARN_CALL(prlimit64),
    ARN_CALL(pselect6),
    ARN_CALL(pwrite64),
    ARN_CALL(read),
    ARN_CALL(readlinkat),
    ARN_CALL(recvfrom),
    ARN_CALL(rseq),
    ARN_CALL(rt_sigaction),
    ARN_CALL(rt_sigprocmask),
    ARN_CALL(rt_sigreturn),
    ARN_CALL(rt_sigtimedwait),
    ARN_CALL(sched_getaffinity),
    ARN_CALL(sched_setaffinity),
    ARN_CALL(sched_yield),
    ARN_CALL(sendto),
    ARN_CALL(set_robust_list),
    ARN_CALL(set_tid_address),
    ARN_CALL(setsockopt),
    ARN_CALL(shutdown),
    ARN_CALL(sigaltstack),
    ARN_CALL(socket),
    ARN_CALL(sysinfo),
    ARN_CALL(tgkill),
    ARN_CALL(uname),
    ARN_CALL(unlinkat),
    ARN_CALL(write),
    ARN_CALL(writev),
#if defined(__x86_64__)  // older forms, which arm64 does not have
    ARN_CALL(access),
    ARN_CALL(arch_prctl),
    ARN_CALL(chmod),
    ARN_CALL(lstat),
    ARN_CALL(mkdir),
    ARN_CALL(open),
    ARN_CALL(poll),
    ARN_CALL(readlink),
    ARN_CALL(rename),
    ARN_CALL(select),
    ARN_CALL(stat),
    ARN_CALL(unlink),
#else
    ARN_CALL(renameat),
#endif
};
#undef ARN_CALL

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                            LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR;
constexpr uint64_t kAll = kRead | kWrite | LANDLOCK_ACCESS_FS_EXECUTE |
                          LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                          LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                          LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

bool Add(int rules, const std::string& path, uint64_t access) {
  landlock_path_beneath_attr beneath = {};
  beneath.parent_fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (beneath.parent_fd < 0) return false;
  struct stat info;
  const bool is_folder = fstat(beneath.parent_fd, &info) == 0 && S_ISDIR(info.st_mode);
  constexpr uint64_t kOfFiles =
      LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
  beneath.allowed_access = is_folder ? access : access & kOfFiles;
  const long added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
  close(beneath.parent_fd);
  return added == 0;
}

}  // namespace

int CallNumber(const std::string& name) {
  for (const NamedCall& call : kCalls) {
    if (name == call.name) return call.number;
  }
  return -1;
}

bool AllowOnlyCalls(const std::vector<uint32_t>& numbers) {
  const auto load = [](size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  };
  const sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  std::vector<sock_filter> program = {load(offsetof(seccomp_data, arch)),
                                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
                                      kill, load(offsetof(seccomp_data, nr))};
  for (const uint32_t number : numbers) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    program.push_back(allow);
  }
  program.push_back(kill);
  const sock_fprog given = {static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &given) == 0;
}

int AllowOnlyFiles(const std::vector<std::string>& to_read,
                   const std::vector<std::string>& to_write) {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version <= 0) return 0;
  landlock_ruleset_attr attributes = {};
  attributes.handled_access_fs = kAll;
  const int rules =
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
  if (rules < 0) return 0;
  bool is_made = true;
  for (const std::string& path : to_read) {
    is_made = Add(rules, path, kRead | LANDLOCK_ACCESS_FS_EXECUTE) && is_made;
  }
  for (const std::string& path : to_write) is_made = Add(rules, path, kRead | kWrite) && is_made;
  is_made = is_made && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
            syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  close(rules);
  return is_made ? static_cast<int>(version) : 0;
}

}  // namespace arn::test
