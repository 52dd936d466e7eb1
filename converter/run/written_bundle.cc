#include "converter/run/written_bundle.h"

#include <arenite/observe.h>

#include "converter/base/error.h"
#include "converter/base/source_file.h"
#include "platform/os/pages.h"

namespace arn::convert {

WrittenBundle::WrittenBundle(const std::filesystem::path& bundle, const std::string& purpose) {
  const SourceFile opened(bundle);
  Diag diag;
  if (MapFd(opened.fd(), 0, 0, &file_, &diag) != Status::kOk) {
    Fail("%s: cannot %s: %s", bundle.c_str(), purpose.c_str(), diag.text());
  }
  try {
    runner_.emplace(bundle, file_.bytes.data(), file_.bytes.size(), purpose);
  } catch (...) {
    UnmapFile(&file_);
    throw;
  }
}

WrittenBundle::~WrittenBundle() {
  runner_.reset();
  UnmapFile(&file_);
}

void WrittenBundle::Forget() const { ForgetPages(file_.bytes); }

void WrittenBundle::OnMatmul(void* user, const char*, const float*, size_t, size_t, const float*,
                             size_t) {
  static_cast<const WrittenBundle*>(user)->Forget();
}

void WrittenBundle::Start(const arn_session_options& options) {
  runner_->Start(options);
  runner_->Check(arn_session_observe_matmuls(runner_->session(), OnMatmul, this));
}

}  // namespace arn::convert
