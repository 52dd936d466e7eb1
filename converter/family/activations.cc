// Names of activations in config.json (transformers/activations.py).
#include "converter/family/families.h"

namespace arn::convert {

std::optional<Activation> ActivationOf(const std::string& name) {
  struct Row {
    const char* name;
    Activation activation;
  };
  constexpr Row kRows[] = {
      {"silu", Activation::kSilu},
      {"swish", Activation::kSilu},
      {"gelu", Activation::kGelu},
      {"gelu_python", Activation::kGelu},
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh},
      {"gelu_accurate", Activation::kGeluTanh},
      {"gelu_python_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},
      {"relu2", Activation::kReluSquared},
      {"quick_gelu", Activation::kQuickGelu},
      {"tanh", Activation::kTanh},
      {"sigmoid", Activation::kSigmoid},
      {"mish", Activation::kMish},
      {"xielu", Activation::kXielu},
  };
  for (const Row& row : kRows) {
    if (name == row.name) return row.activation;
  }
  return std::nullopt;
}

}  // namespace arn::convert
