// Models, adapters and sessions under failing calls.
#include "tests/trust/scenario_parts.h"

namespace arn::test {
namespace {

template <uint32_t residency, uint32_t hashes>
class Open : public Scenario {
 public:
  explicit Open(const std::string& folder) : path_(folder + "/text.arn") {}
  Outcome Try() override {
    arn_model_options options = ARN_MODEL_OPTIONS_INIT;
    options.residency = residency;
    options.verify_hashes = hashes;
    char error[512] = "";
    const arn_status status = arn_model_open(path_.c_str(), &options, error, sizeof error, &model_);
    return {status, error};
  }
  std::string Unchanged() override { return model_ == nullptr ? "" : "a model came back"; }
  std::string Result() override {
    arn_model_info info = ARN_MODEL_INFO_INIT;
    Need(arn_model_get_info(model_, &info), "get_info");
    return std::string(info.architecture) + " " + std::to_string(info.file_bytes) + " " +
           std::to_string(NeededTokens(model_, "a fox").size());
  }
  void TearDown() override { arn_model_close(model_); }

 private:
  std::string path_;
  arn_model* model_ = nullptr;
};

// What a created session gives.
class CreateFirst : public WithModel {
 public:
  explicit CreateFirst(const std::string& folder) : WithModel(folder + "/text.arn") {}
  Outcome Try() override { return Create(Options(), &session_); }
  std::string Unchanged() override { return session_ == nullptr ? "" : "a session came back"; }
  std::string Result() override {
    const std::vector<int32_t> ids = NeededTokens(model_, "Once upon a time");
    Need(arn_session_prefill(session_, ids.data(), ids.size()), "prefill");
    return NeededIds(session_, 4);
  }
  void TearDown() override {
    arn_session_destroy(session_);
    WithModel::TearDown();
  }

 protected:
  virtual arn_session_options Options() const { return SmallSession(); }
  Outcome Create(const arn_session_options& options, arn_session** out) {
    char error[512] = "";
    const arn_status status =
        arn_session_create(model_, &options, nullptr, 0, error, sizeof error, out);
    return {status, error};
  }
  arn_session* session_ = nullptr;
};

class CreateLater : public CreateFirst {
 public:
  using CreateFirst::CreateFirst;
  void SetUp() override {
    CreateFirst::SetUp();
    const Outcome first = Create(Options(), &session_);
    Need(first.status, "create", first.message);
    Result();
    arn_session_destroy(session_);
    session_ = nullptr;
  }
};

class CreateWithFile : public CreateFirst {
 public:
  explicit CreateWithFile(const std::string& folder) : CreateFirst(folder), path_(WorkPath("kv")) {}
  std::string Unchanged() override {
    if (!FileBytes(path_).empty()) return "the KV file has a name";
    return CreateFirst::Unchanged();
  }

 protected:
  arn_session_options Options() const override {
    arn_session_options options = SmallSession();
    options.kv_file = path_.c_str();
    return options;
  }

 private:
  std::string path_;
};

// With all that a session may reserve besides.
class CreateWithAll : public CreateFirst {
 public:
  using CreateFirst::CreateFirst;

 protected:
  arn_session_options Options() const override {
    arn_session_options options = SmallSession();
    options.constraint_bytes = 1 << 20;
    options.speculation = ARN_SPECULATE_NGRAM;
    options.logits_processors = 1;
    options.sensors = 1;
    options.kv_type = ARN_KV_INT4;
    return options;
  }
};

class OpenAdapter : public WithModel {
 public:
  explicit OpenAdapter(const std::string& folder)
      : WithModel(folder + "/text.arn"), path_(folder + "/text.lora.arn") {}
  Outcome Try() override {
    char error[512] = "";
    const arn_status status =
        arn_adapter_open(model_, path_.c_str(), nullptr, error, sizeof error, &adapter_);
    return {status, error};
  }
  std::string Unchanged() override { return adapter_ == nullptr ? "" : "an adapter came back"; }
  std::string Result() override {
    arn_session_options options = SmallSession();
    options.n_adapters = 1;
    options.adapters = &adapter_;
    arn_session* session = nullptr;
    Need(arn_session_create(model_, &options, nullptr, 0, nullptr, 0, &session), "create");
    const uint32_t used = 0;
    const float scale = 1;
    Need(arn_session_set_adapters(session, &used, &scale, 1), "set_adapters");
    const std::vector<int32_t> ids = NeededTokens(model_, "Once upon a time");
    Need(arn_session_prefill(session, ids.data(), ids.size()), "prefill");
    const std::string result = NeededIds(session, 4);
    arn_session_destroy(session);
    return result;
  }
  void TearDown() override {
    arn_adapter_close(adapter_);
    WithModel::TearDown();
  }

 private:
  std::string path_;
  arn_adapter* adapter_ = nullptr;
};

class Prefill : public WithSession {
 public:
  explicit Prefill(const std::string& folder) : WithSession(folder + "/text.arn"), ids_(100) {
    for (size_t i = 0; i < ids_.size(); ++i) ids_[i] = static_cast<int32_t>(5 + i * 7 % 200);
  }
  Outcome Try() override { return Failed(arn_session_prefill(session_, ids_.data(), ids_.size())); }
  std::string Result() override { return NeededIds(session_, 4); }

 private:
  std::vector<int32_t> ids_;
};

class Generate : public WithSession {
 public:
  explicit Generate(const std::string& folder) : WithSession(folder + "/text.arn") {}
  Outcome Try() override {
    text_.clear();
    arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
    options.max_tokens = 24;
    options.user = &text_;
    options.callback = [](void* user, int32_t, const char* text, size_t bytes) {
      static_cast<Text*>(user)->Append(text, bytes);
      return int32_t{0};
    };
    return Failed(arn_session_generate(session_, &options, nullptr));
  }
  std::string Result() override { return std::string(text_.bytes, text_.n); }

 private:
  // Of a fixed size, so that the harness allocates nothing where the library's calls are counted.
  struct Text {
    void clear() { n = 0; }
    void Append(const char* text, size_t count) {
      for (size_t i = 0; i < count && n < sizeof bytes; ++i) bytes[n++] = text[i];
    }
    char bytes[4096];
    size_t n = 0;
  };
  Text text_;
};

class Save : public WithSession {
 public:
  explicit Save(const std::string& folder) : WithSession(folder + "/text.arn") {}
  void SetUp() override {
    WithSession::SetUp();
    path_ = WorkPath("chat.state");
    Need(arn_session_save(session_, path_.c_str()), "save", arn_session_last_error(session_));
    before_ = FileBytes(path_);
    NeededIds(session_, 1);
    uint64_t bytes = 0;
    Need(arn_session_save_bytes(session_, &bytes), "save_bytes");
    after_.resize(bytes);
    Need(arn_session_save_memory(session_, after_.data(), bytes, &bytes), "save_memory");
  }
  Outcome Try() override { return Failed(arn_session_save(session_, path_.c_str())); }
  std::string Unchanged() override {
    if (!FileBytes(path_ + ".tmp").empty()) return "a temporary file is left";
    const std::string found = FileBytes(path_);
    if (found == before_) return "";
    // The sync of the folder comes after the rename, and the message says what that means.
    const std::string message = arn_session_last_error(session_);
    const bool is_said = message.find("new contents are written") != std::string::npos;
    return found == after_ && is_said ? "" : "the file is neither the old nor the new one";
  }
  std::string Result() override { return FileBytes(path_) == after_ ? "whole" : "damaged"; }

 private:
  std::string path_, before_, after_;
};

template <uint32_t verify>
class Restore : public WithSession {
 public:
  explicit Restore(const std::string& folder) : WithSession(folder + "/text.arn") {}
  void SetUp() override {
    WithSession::SetUp();
    path_ = WorkPath("chat.state");
    NeededIds(session_, 20);
    Need(arn_session_save(session_, path_.c_str()), "save", arn_session_last_error(session_));
    Need(arn_session_reset(session_), "reset");
    const std::vector<int32_t> ids = NeededTokens(model_, "Another beginning");
    Need(arn_session_prefill(session_, ids.data(), ids.size()), "prefill");
    before_ = TokensOf(session_);
  }
  Outcome Try() override {
    arn_restore_options options = ARN_RESTORE_OPTIONS_INIT;
    options.verify = verify;
    return Failed(arn_session_restore(session_, path_.c_str(), &options));
  }
  std::string Unchanged() override {
    return TokensOf(session_) == before_ ? "" : "the session has other tokens";
  }
  std::string Result() override { return TokensOf(session_) + NeededIds(session_, 4); }

 private:
  std::string path_, before_;
};

// Calls that need nothing of the system: fork, rewind, trim, beams.
class Branches : public WithSession {
 public:
  explicit Branches(const std::string& folder) : WithSession(folder + "/text.arn") {}
  Outcome Try() override {
    uint64_t freed = 0;
    int32_t id = 0;
    arn_status status = arn_session_select(session_, 1);
    if (status == ARN_OK) status = arn_session_reset(session_);
    if (status == ARN_OK) status = arn_session_select(session_, 0);
    if (status == ARN_OK) status = arn_session_fork(session_, 0, 1);
    if (status == ARN_OK) status = arn_session_select(session_, 1);
    if (status == ARN_OK) status = arn_session_rewind(session_, 3);
    if (status == ARN_OK) status = arn_session_decode(session_, &id);
    if (status == ARN_OK) status = arn_session_trim(session_, &freed);
    if (status == ARN_OK) status = arn_session_select(session_, 0);
    return Failed(status);
  }
  std::string Result() override { return NeededIds(session_, 4); }
};

}  // namespace

std::vector<NamedScenario> SessionScenarios() {
  return {
      {"open", Make<Open<ARN_RESIDENCY_MAPPED, ARN_HASHES_ALL>>},
      {"open_copied", Make<Open<ARN_RESIDENCY_COPIED, ARN_HASHES_ON_USE>>},
      {"open_locked", Make<Open<ARN_RESIDENCY_LOCKED, ARN_HASHES_INDEX>>},
      {"open_huge", Make<Open<ARN_RESIDENCY_HUGE, ARN_HASHES_INDEX>>},
      {"create_first", Make<CreateFirst>},
      {"create_later", Make<CreateLater>},
      {"create_with_file", Make<CreateWithFile>},
      {"create_with_all", Make<CreateWithAll>},
      {"adapter", Make<OpenAdapter>},
      {"prefill", Make<Prefill>},
      {"generate", Make<Generate>},
      {"branches", Make<Branches>},
      {"save", Make<Save>},
      {"restore", Make<Restore<ARN_VERIFY_DEFAULT>>},
      {"restore_verified", Make<Restore<ARN_VERIFY_ALL>>},
  };
}

}  // namespace arn::test
