#include "tools/arenite/bench_count.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tools/arenite/device_profiles.h"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"

namespace arn::tool {
namespace {

// Dispatches of the same kernel, with matrices of the same shape.
struct CountRow {
  std::string name;
  uint64_t dispatches = 0, barriers = 0;
  double loaded = 0, stored = 0, memory = 0;  // bytes; memory: what the cache does not hold
  double least = 0;
  double int_ops = 0, float_ops = 0, half_ops = 0, half_matrix_ops = 0, reductions = 0;
  double us = 0, least_us = 0;  // modelled; what memory or arithmetic alone would take
  std::string bound;            // what most of the time is spent on
  double bound_us = 0;
};

struct Count {
  std::vector<CountRow> rows;
  CountRow total;
};

// Adds the dispatches of a run by the device's limits.
class Counter {
 public:
  explicit Counter(const DeviceProfile& profile) : profile_(profile) {}

  static void Visit(void* self, const arn_dispatch_cost* cost) {
    static_cast<Counter*>(self)->Add(*cost);
  }
  Count Take() { return std::move(count_); }

 private:
  void Add(const arn_dispatch_cost& cost) {
    std::string name = cost.kernel;
    if (cost.rows != 0) name += Format(" %s %ux%u", cost.dtype, cost.rows, cost.cols);
    auto at = std::find_if(count_.rows.begin(), count_.rows.end(),
                           [&](const CountRow& row) { return row.name == name; });
    if (at == count_.rows.end()) {
      count_.rows.emplace_back();
      at = count_.rows.end() - 1;
      at->name = name;
    }
    AddTo(cost, &*at);
    AddTo(cost, &count_.total);
  }

  void AddTo(const arn_dispatch_cost& cost, CountRow* row) const {
    const auto far_bytes = static_cast<double>(cost.far_bytes);
    auto memory = static_cast<double>(cost.least);
    // Workgroups load the far operand as a whole, one after another: from memory each time.
    if (far_bytes > profile_.cache_mb * 1e6) {
      memory += std::max(0.0, static_cast<double>(cost.far_loaded) - far_bytes);
    }
    const bool is_matrix = std::strcmp(cost.kernel, "gemm_coop") == 0;
    const double int_ops = 2.0 * static_cast<double>(cost.int_products);
    const double float_ops = 2.0 * static_cast<double>(cost.float_products);
    // 1e9 bytes a second are 1e3 a microsecond, 1e12 operations 1e6.
    const double memory_us = memory / profile_.memory_gb_s / 1e3;
    const double int_us = int_ops / (is_matrix ? profile_.matrix_tops : profile_.dot_tops) / 1e6;
    const double half_ops = 2.0 * static_cast<double>(cost.half_products);
    const double half_matrix_ops = 2.0 * static_cast<double>(cost.half_matrix_products);
    // The same units compute both; matrices take turns with them.
    double float_us = (float_ops / profile_.float_tflops + half_ops / profile_.half_tflops) / 1e6;
    if (half_matrix_ops != 0) float_us += half_matrix_ops / profile_.half_matrix_tflops / 1e6;
    const double wait_us = cost.waits != 0 ? profile_.dispatch_us : 0;
    const double work_us = std::max({memory_us, int_us, float_us});
    row->dispatches += 1;
    row->barriers += cost.waits;
    row->loaded += static_cast<double>(cost.loaded);
    row->stored += static_cast<double>(cost.stored);
    row->memory += memory;
    row->least += static_cast<double>(cost.least);
    row->int_ops += int_ops;
    row->float_ops += float_ops;
    row->half_ops += half_ops;
    row->half_matrix_ops += half_matrix_ops;
    row->reductions += static_cast<double>(cost.reductions);
    row->us += work_us + wait_us;
    row->least_us +=
        std::max({static_cast<double>(cost.least) / profile_.memory_gb_s / 1e3, int_us, float_us});
    const double bound_us = std::max(work_us, wait_us);
    if (bound_us <= row->bound_us) return;
    row->bound_us = bound_us;
    row->bound = bound_us == wait_us     ? "dispatch"
                 : bound_us == memory_us ? "memory"
                 : bound_us == int_us    ? "integer"
                                         : "float";
  }

  const DeviceProfile& profile_;
  Count count_;
};

// Counts with the variant of matmuls that takes the least time. count: an arn_..._count of the
// model with these traits.
template <typename CountRun>
Count CountBest(const DeviceProfile& profile, const CountRun& count_run) {
  std::optional<Count> best;
  for (uint32_t variant = 0;; ++variant) {
    arn_gpu_traits traits = profile.traits;
    traits.matmul_variant = variant;
    Counter counter(profile);
    char error[512] = "";
    const arn_status status = count_run(traits, &counter, error, sizeof error);
    if (status == ARN_NOT_FOUND && best) return *best;
    if (status != ARN_OK) throw Error(error);
    Count count = counter.Take();
    if (!best || count.total.us < best->total.us) best = std::move(count);
  }
}

// The longest side of the images that a tower's count is for, in pixels.
constexpr uint32_t kImageSide = 1024;

std::string Megabytes(double bytes) { return Format("%.2f", bytes / 1e6); }

void PrintLine(const CountRow& row) {
  const double all_ops = row.int_ops + row.float_ops + row.half_ops + row.half_matrix_ops;
  const std::string ops = all_ops == 0 ? "-" : Format("%.3f", all_ops / 1e9);
  Print(Format("| %-32s | %5llu | %5llu | %10s | %10s | %9s | %10s | %9.1f | %-8s |\n",
               row.name.c_str(), static_cast<unsigned long long>(row.dispatches),
               static_cast<unsigned long long>(row.barriers), Megabytes(row.loaded).c_str(),
               Megabytes(row.memory).c_str(), Megabytes(row.stored).c_str(), ops.c_str(), row.us,
               row.bound.c_str()));
}

// unit: what the run has n of.
void PrintCount(const std::string& title, const Count& count, uint32_t n, const char* unit) {
  Print("\n" + title + "\n");
  Print(
      "| kernel                           | disp. | barr. |  loaded MB |  memory MB | stored MB |  "
      "       GOP |        us | bound by |\n"
      "|----------------------------------|------:|------:|-----------:|-----------:|----------:|-"
      "----------:|----------:|----------|\n");
  for (const CountRow& row : count.rows) PrintLine(row);
  CountRow total = count.total;
  total.name = "all";
  total.bound = "";
  PrintLine(total);
  Print(
      Format("%.0f %s/s; %.0f %% of the time is what memory, each operand once, and "
             "arithmetic take\n",
             n / total.us * 1e6, unit, 100 * total.least_us / total.us));
}

void WriteRow(const CountRow& row, JsonWriter* json) {
  json->BeginObject();
  if (!row.name.empty()) json->Key("kernel").String(row.name);
  json->Key("dispatches").Uint(row.dispatches);
  json->Key("barriers").Uint(row.barriers);
  json->Key("loaded_bytes").Number(row.loaded);
  json->Key("memory_bytes").Number(row.memory);
  json->Key("least_bytes").Number(row.least);
  json->Key("stored_bytes").Number(row.stored);
  json->Key("integer_ops").Number(row.int_ops);
  json->Key("float_ops").Number(row.float_ops);
  json->Key("half_ops").Number(row.half_ops);
  json->Key("half_matrix_ops").Number(row.half_matrix_ops);
  json->Key("reductions").Number(row.reductions);
  json->Key("us").Number(row.us);
  json->Key("least_us").Number(row.least_us);
  json->EndObject();
}

void WriteCount(const char* profile, const char* test, uint32_t tokens, uint32_t depth,
                const Count& count, JsonWriter* json) {
  json->BeginObject();
  json->Key("device_profile").String(profile);
  json->Key("test").String(test);
  json->Key("tokens").Uint(tokens);
  json->Key("depth").Uint(depth);
  json->Key("total");
  WriteRow(count.total, json);
  json->Key("kernels").BeginArray();
  for (const CountRow& row : count.rows) WriteRow(row, json);
  json->EndArray();
  json->EndObject();
}

}  // namespace

int BenchCount(const Model& model, arn_session_options options, const CountRequest& request) {
  uint32_t most = 1, context = 1;
  for (const uint32_t n : request.prefills) most = std::max(most, n);
  for (const uint32_t depth : request.depths) context = std::max(context, depth + most);
  options.prefill_chunk = most;
  options.context_tokens = context;
  arn_image_info image_info = ARN_IMAGE_INFO_INIT;
  const bool has_tower = arn_image_get_info(model.get(), &image_info) == ARN_OK;
  arn_image_options images = ARN_IMAGE_OPTIONS_INIT;
  images.backend = options.backend;
  images.max_side = kImageSide;
  JsonWriter json;
  json.BeginArray();
  for (const DeviceProfile& profile : DeviceProfiles()) {
    if (std::ranges::find(request.profiles, profile.name) == request.profiles.end()) continue;
    if (!request.json) {
      Print(Format("%s: %.1f GB/s, %.4g MB of cache, int8 %.4g TOPS by dot products", profile.name,
                   profile.memory_gb_s, profile.cache_mb, profile.dot_tops));
      if (profile.matrix_tops != 0) Print(Format(", %.4g by matrices", profile.matrix_tops));
      Print(Format("; f32 %.4g TFLOPS, f16 %.4g", profile.float_tflops, profile.half_tflops));
      if (profile.half_matrix_tflops != 0) {
        Print(Format(", %.4g by matrices", profile.half_matrix_tflops));
      }
      Print(Format("; %.1f us a dispatch\n(%s)\n", profile.dispatch_us, profile.source));
    }
    const auto add = [&](const char* test, uint32_t n, const char* unit, uint32_t depth,
                         const Count& count) {
      if (request.json) {
        WriteCount(profile.name, test, n, depth, count, &json);
      } else {
        PrintCount(Format("%s %u @ %u", test, n, depth), count, n, unit);
      }
    };
    const auto add_run = [&](const char* test, uint32_t tokens, uint32_t depth) {
      add(test, tokens, "tokens", depth,
          CountBest(profile,
                    [&](const arn_gpu_traits& gpu, Counter* counter, char* error, size_t n) {
                      return arn_session_count(model.get(), &options, &gpu, tokens, depth,
                                               Counter::Visit, counter, error, n);
                    }));
    };
    for (const uint32_t depth : request.depths) {
      for (const uint32_t n : request.prefills) {
        if (n != 0) add_run("prefill", n, depth);
      }
      if (request.decodes) add_run("decode", 1, depth);
    }
    uint32_t rows = 0;
    if (model.info().encoder_rows != 0) {
      const Count count = CountBest(
          profile, [&](const arn_gpu_traits& gpu, Counter* counter, char* error, size_t n) {
            return arn_session_count_encoder(model.get(), &options, &gpu, Counter::Visit, counter,
                                             error, n, &rows);
          });
      add("encoder", rows, "rows", 0, count);
    }
    if (has_tower) {
      const Count count = CountBest(
          profile, [&](const arn_gpu_traits& gpu, Counter* counter, char* error, size_t n) {
            return arn_image_count(model.get(), &images, &gpu, Counter::Visit, counter, error, n,
                                   &rows);
          });
      add("tower", rows, "rows", 0, count);
    }
    if (!request.json) Print("\n");
  }
  json.EndArray();
  if (request.json) Print(json.Finish());
  return 0;
}

}  // namespace arn::tool
