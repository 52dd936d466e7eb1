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

// Adds --adapter FILE[=SCALE], which can be repeated; its values go to *given. `several`: ends the
// help with what several of them do.
void AddAdapterOption(CLI::App* app, std::vector<std::string>* given,
                      const char* several = "all add up");

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

  size_t size() const { return handles_.size(); }
  // Returns the name of an adapter's file without its folder and extension.
  const std::string& name(size_t i) const { return names_[i]; }
  float scale(size_t i) const { return scales_[i]; }

 private:
  std::vector<AdapterHandle> adapters_;
  std::vector<const arn_adapter*> handles_;
  std::vector<std::string> names_;
  std::vector<uint32_t> indices_;
  std::vector<float> scales_;
};

}  // namespace arn::tool
