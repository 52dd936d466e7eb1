// --adapter: low-rank adapters that a session's sequences use.
#pragma once

#include <arenite/arenite.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/arenite/model.h"

namespace CLI {
class App;
}

namespace arn::tool {

// Adds --adapter FILE[=SCALE], which can be repeated; its values go to *given.
void AddAdapterOption(CLI::App* app, std::vector<std::string>* given);

struct CloseAdapter {
  void operator()(arn_adapter* adapter) const { arn_adapter_close(adapter); }
};
using AdapterHandle = std::unique_ptr<arn_adapter, CloseAdapter>;

// Open adapters of a model. Must outlive the sessions made with them.
class Adapters {
 public:
  // `given`: values of --adapter. Throws Error.
  Adapters(const Model& model, const std::vector<std::string>& given);

  // Makes a session with these options hold the adapters.
  void AddTo(arn_session_options* options) const;
  // Makes the first n sequences use all of them, with their scales. Selects sequence 0.
  void Use(const Session& session, uint32_t n_sequences = 1) const;

 private:
  std::vector<AdapterHandle> adapters_;
  std::vector<const arn_adapter*> handles_;
  std::vector<uint32_t> indices_;
  std::vector<float> scales_;
};

}  // namespace arn::tool
