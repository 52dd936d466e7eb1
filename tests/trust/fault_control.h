// The page that a process under the fault shim shares with whoever tests it: which call fails, and
// what the process holds. failures.py has the same fields, in the same order.
#pragma once

#include <cstdint>

namespace arn::test {

// Classes of calls. The order is that of failures.CLASSES.
enum FaultClass : uint64_t {
  kFaultNone = 0,
  kFaultMemory,  // malloc and its relatives, operator new by way of it
  kFaultMap,     // mmap
  kFaultHint,    // madvise, posix_fadvise, mincore, mlock, sync_file_range
  kFaultOpen,    // open, openat, fopen, fdopen, opendir
  kFaultStat,    // stat, fstat, lstat, statvfs, readlink, flock
  kFaultRead,    // read, pread, readv, fread, fgets
  kFaultWrite,   // write, pwrite, writev, fwrite, fflush, ftruncate
  kFaultSync,    // fsync, fdatasync
  kFaultRename,  // rename
  kFaultThread,  // pthread_create
  kFaultListen,  // socket, bind, listen
  kFaultSocket,  // accept, recv, send
  kFaultClasses
};

// In place of an errno: a read or a write moves half of its bytes.
inline constexpr uint64_t kFaultShort = 1000;

struct FaultControl {
  uint64_t is_loaded;  // set by the shim
  uint64_t fault_class;
  uint64_t error;       // errno, or kFaultShort
  uint64_t at;          // which call fails, from 1; 0: none
  uint64_t is_forever;  // 1: all calls from `at` on fail
  uint64_t calls;       // of the class since it was armed
  uint64_t failures;
  int64_t blocks;  // of the heap, not yet freed
  int64_t mapped;  // bytes mapped and not unmapped
};

// Environment variable with the path of a file of a FaultControl.
inline constexpr char kFaultVariable[] = "ARN_FAULT_CONTROL";

}  // namespace arn::test
