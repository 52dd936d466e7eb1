// What the library needs of the system once its objects exist: futex() to wake its threads, and
// nothing else. A filter kills the process at any other call, of any thread.
#include "tests/trust/sandbox.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

// exit_group() is the test's own. clock_gettime() is a system call where the kernel has no other
// way to tell the time.
const std::vector<uint32_t> kNeeded = {SYS_futex, SYS_clock_gettime, SYS_exit_group};

struct Shared {
  int step = 0;  // the last one that was begun
  arn_status status = ARN_OK;
};

// Runs `work` in a process of its own and returns how that ended.
template <typename Work>
int Apart(Shared** out, Work work) {
  void* const page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  *out = new (page) Shared();
  const pid_t pid = fork();
  if (pid == 0) {
    work(*out);
    syscall(SYS_exit_group, 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

// Waits until all threads of the process but this one wait: they have begun, which takes calls of
// the C library.
void WaitForThreads() {
  for (int tries = 0; tries < 1000; ++tries) {
    bool all_wait = true;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      if (entry.path().filename() == std::to_string(getpid())) continue;
      // "12 (name) S ...": it sleeps
      const std::string stat = ReadText(entry.path() / "stat");
      all_wait = all_wait && stat.find(") S ") != std::string::npos;
    }
    if (all_wait && tries > 0) return;
    usleep(10000);
  }
}

class Sandbox : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    bundle_ = (folder_ / "text.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle_, {"--weights", "int8"}));
  }
  TempFolder folder_;
  std::string bundle_;
};

TEST_F(Sandbox, AnythingElse_IsKilled) {
  Shared* shared = nullptr;
  const int status = Apart(&shared, [](Shared* out) {
    if (!AllowOnlyCalls(kNeeded)) return;
    out->step = 1;
    syscall(SYS_getpid);
    out->step = 2;
  });
  if (shared->step == 0) GTEST_SKIP() << "the kernel has no filters of system calls";
  EXPECT_EQ(1, shared->step);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(SIGSYS, WTERMSIG(status));
}

// Each step is a call of the C API; the first that fails, or at which the process is killed, stays
// in `shared`.
void UseAll(arn_model* model, arn_session* session, arn_chat* chat, arn_conversation* talk,
            const arn_constraint_options& schema, Shared* shared) {
  static int32_t ids[512];
  static char text[8192];
  alignas(64) static char scratch[16 << 20];
  static char state[4 << 20];
  size_t n = 0, bytes = 0;
  uint64_t state_bytes = 0;
  int32_t id = 0;
  const auto step = [shared](arn_status status) {
    if (shared->status == ARN_OK) ++shared->step;
    if (shared->status == ARN_OK) shared->status = status;
  };
  arn_tokenize_options tokenize = ARN_TOKENIZE_OPTIONS_INIT;
  tokenize.scratch = scratch;
  tokenize.scratch_bytes = sizeof scratch;
  step(arn_tokenize_with(model, "Once upon a time", 16, &tokenize, ids, 512, &n));
  step(arn_session_prefill(session, ids, n));
  step(arn_session_decode(session, &id));
  step(arn_session_fork(session, 0, 1));
  step(arn_session_select(session, 1));
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 20;
  step(arn_session_generate(session, &generate, nullptr));
  step(arn_session_save_memory(session, state, sizeof state, &state_bytes));
  step(arn_session_rewind(session, 2));
  step(arn_session_restore_memory(session, state, state_bytes, nullptr));
  step(arn_session_set_constraint(session, &schema));
  step(arn_session_generate(session, &generate, nullptr));
  step(arn_session_set_constraint(session, nullptr));
  step(arn_session_reset(session));
  const char* const messages = "[{\"role\": \"user\", \"content\": \"Hi\"}]";
  arn_chat_input input = ARN_CHAT_INPUT_INIT;
  input.messages = messages;
  input.messages_bytes = std::strlen(messages);
  const arn_chat_time now = {2025, 3, 9, 14, 5, 6, 7};
  input.now = &now;
  step(arn_chat_render(chat, &input, text, sizeof text, &bytes));
  step(arn_conversation_add(talk, "user", "Hi", 2));
  step(arn_conversation_reply(talk, &generate, nullptr, nullptr, nullptr));
  step(arn_detokenize(model, ids, n, 0, text, sizeof text, &bytes));
}

TEST_F(Sandbox, AfterCreation_OnlyFutexIsNeeded) {
  Shared* shared = nullptr;
  const int status = Apart(&shared, [this](Shared* out) {
    arn_model* model = nullptr;
    arn_session* session = nullptr;
    arn_chat* chat = nullptr;
    arn_conversation* talk = nullptr;
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.context_tokens = 256;
    options.max_sequences = 2;
    options.n_threads = 3;
    options.constraint_bytes = 1 << 20;
    options.speculation = ARN_SPECULATE_NGRAM;
    arn_constraint_options schema = ARN_CONSTRAINT_OPTIONS_INIT;
    schema.text = "{\"type\": \"object\"}";
    schema.text_bytes = std::strlen(schema.text);
    out->status = arn_model_open(bundle_.c_str(), nullptr, nullptr, 0, &model);
    if (out->status == ARN_OK) {
      out->status = arn_session_create(model, &options, nullptr, 0, nullptr, 0, &session);
    }
    if (out->status == ARN_OK) {
      out->status = arn_chat_create(model, nullptr, nullptr, 0, nullptr, 0, &chat);
    }
    if (out->status == ARN_OK) {
      out->status = arn_conversation_create(session, nullptr, nullptr, 0, nullptr, 0, &talk);
    }
    if (out->status != ARN_OK) return;
    WaitForThreads();
    if (!AllowOnlyCalls(kNeeded)) return;
    UseAll(model, session, chat, talk, schema, out);
  });
  if (shared->step == 0 && shared->status == ARN_OK) {
    GTEST_SKIP() << "the kernel has no filters of system calls";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "killed in step " << shared->step + 1;
  EXPECT_EQ(ARN_OK, shared->status) << "step " << shared->step;
  EXPECT_EQ(17, shared->step);
}

}  // namespace
}  // namespace arn::test
