#include "tools/serve/served_models.h"

#include <algorithm>
#include <limits>

#include "tools/arenite/error.h"
#include "tools/cli/format.h"

namespace arn::serve {
namespace {

// Returns "a", "a" or "b" ... for messages.
std::string Quoted(const ServedModels& models) {
  std::string text = "\"" + models.base + "\"";
  for (const ServedAdapter& adapter : models.adapters) text += ", \"" + adapter.name + "\"";
  return text;
}

// Reads [{"id": INDEX, "scale": SCALE}, ...]. An adapter that is not named, or by 0, is not used.
AdapterUses ReadList(const Json& list, const std::string& path, size_t n_adapters) {
  if (!list.is_array()) throw BadField(path, "is " + KindOf(list) + ", expected an array");
  std::vector<std::optional<float>> scales(n_adapters);
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string at = cli::Format("%s[%zu]", path.c_str(), i);
    if (!list[i].is_object()) {
      throw BadField(at, "is " + KindOf(list[i]) + ", expected an object with id and scale");
    }
    Fields read(list[i], at);
    const auto id = read.Whole("id", 0, UINT32_MAX);
    if (!id) throw BadField(read.PathOf("id"), "is missing");
    if (*id >= n_adapters) {
      throw BadField(read.PathOf("id"), cli::Format("is %llu: the server has %zu adapter%s",
                                                    static_cast<unsigned long long>(*id),
                                                    n_adapters, n_adapters == 1 ? "" : "s"));
    }
    if (scales[*id]) throw BadField(read.PathOf("id"), "is there twice");
    constexpr double kMost = std::numeric_limits<float>::max();
    scales[*id] = static_cast<float>(read.Number("scale", -kMost, kMost).value_or(1.0));
    read.End();
  }
  AdapterUses uses;
  for (uint32_t i = 0; i < scales.size(); ++i) {
    if (scales[i].value_or(0.0f) != 0.0f) uses.push_back({i, *scales[i]});
  }
  return uses;
}

}  // namespace

void ServedModels::Check() const {
  for (size_t i = 0; i < adapters.size(); ++i) {
    const std::string& name = adapters[i].name;
    const bool is_again = std::any_of(adapters.begin(), adapters.begin() + static_cast<long>(i),
                                      [&](const auto& other) { return other.name == name; });
    if (name == base || is_again) {
      throw tool::Error("--adapter " + name + ": another model has this name; " +
                        (name == base ? "see --name" : "rename the file"));
    }
  }
}

uint32_t ServedModels::Find(const std::string& name) const {
  const auto found = std::find_if(adapters.begin(), adapters.end(),
                                  [&](const auto& adapter) { return adapter.name == name; });
  if (found == adapters.end() && name != base) {
    throw ApiError(404, "invalid_request_error",
                   "there is no model \"" + name + "\": this server has " + Quoted(*this), "model",
                   "model_not_found");
  }
  return static_cast<uint32_t>(found - adapters.begin());
}

AdapterUses ServedModels::Read(Fields* fields, std::string* name) const {
  *name = fields->Text("model").value_or(base);
  const uint32_t index = Find(*name);
  const Json* list = fields->Find("lora");
  if (index == adapters.size()) {
    return list == nullptr ? AdapterUses() : ReadList(*list, fields->PathOf("lora"), index);
  }
  if (list != nullptr) {
    throw BadField("lora", "cannot be combined with a model that is an adapter: \"" + *name + "\"");
  }
  return {{index, adapters[index].scale}};
}

}  // namespace arn::serve
