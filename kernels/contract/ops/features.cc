#include "kernels/contract/ops/op_contract.h"

namespace arn {

constinit const OpContract kFeaturesOp =
    MakeOp<OpDefaults<FeaturesParams>>("features", kHasOut | kInEncoder | kTakesFactors);

}  // namespace arn
