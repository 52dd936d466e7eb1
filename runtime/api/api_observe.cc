#include "arenite/observe.h"
#include "runtime/api/handles.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry point below is C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

arn_status arn_session_observe_matmuls(arn_session* session, arn_matmul_observer observer,
                                       void* user) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return BesideScheduler(session, [&](Session& s) {
    s.executor().ObserveMatmuls(observer, user);
    return Status::kOk;
  });
}
