// arenite constrain: tests texts against a constraint, token by token, and measures what it costs.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>

#include "nlohmann/json.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/constraint.h"
#include "tools/arenite/io.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

constexpr int kExitRefusedText = 1;
constexpr int kExitRefusedConstraint = 2;

struct ConstrainArguments {
  ConstraintArguments constraint;
  std::string instances, bundle;
  uint32_t tokens = 2000;
  uint64_t seed = 0;
  bool json = false;
  bool times = false;
};

struct DestroyConstraint {
  void operator()(arn_constraint* constraint) const { arn_constraint_destroy(constraint); }
};
using ConstraintHandle = std::unique_ptr<arn_constraint, DestroyConstraint>;

Model OpenTokenizer(const ConstrainArguments& arguments) {
  ModelArguments model;
  model.bundle = arguments.bundle;
  return OpenModel(model);
}

// Returns null, with the reason, if the constraint is refused.
ConstraintHandle Compile(const Model& model, const ConstraintText& text, bool any_spelling,
                         std::string* reason) {
  char error[1024] = "";
  arn_constraint* constraint = nullptr;
  arn_constraint_options options = text.Options();
  if (options.kind == ARN_CONSTRAINT_JSON_SCHEMA) options.any_spelling = any_spelling ? 1 : 0;
  const arn_status status = arn_constraint_create(
      model.get(), &options, nullptr, text.memory_bytes(), error, sizeof error, &constraint);
  if (status != ARN_OK) *reason = error[0] != '\0' ? error : arn_status_name(status);
  return ConstraintHandle(constraint);
}

void CheckStatus(arn_status status) {
  if (status == ARN_OK) return;
  throw Error(status == ARN_OUT_OF_MEMORY ? "the constraint needs more than --constraint-memory"
                                          : std::string("constraint: ") + arn_status_name(status));
}

arn_constraint_stats_data StatsOf(const arn_constraint* constraint) {
  arn_constraint_stats_data stats = ARN_CONSTRAINT_STATS_INIT;
  CheckStatus(arn_constraint_stats(constraint, &stats));
  return stats;
}

std::vector<std::string> ReadLines(const std::string& path) {
  const std::string text = ReadFile(path);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Returns the offset of the first byte that is not UTF-8; text.size() if there is none.
size_t BadUtf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) {
      return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0};
    };
    const uint8_t lead = byte(i);
    const size_t n = lead < 0x80                   ? 1
                     : lead >= 0xC2 && lead < 0xE0 ? 2
                     : lead >= 0xE0 && lead < 0xF0 ? 3
                     : lead >= 0xF0 && lead < 0xF5 ? 4
                                                   : 0;
    // Overlong forms, surrogates, and what is above U+10FFFF.
    const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    bool is_valid = n != 0 && (n == 1 || (byte(i + 1) >= low && byte(i + 1) <= high));
    for (size_t k = 2; k < n; ++k) is_valid = is_valid && (byte(i + k) & 0xC0) == 0x80;
    if (!is_valid) return i;
    i += n;
  }
  return text.size();
}

struct Verdict {
  bool is_accepted = false;
  uint64_t offset = 0;  // bytes allowed
};

// `has_special`: special tokens in the line are tokens, as in replies.
std::vector<int32_t> Tokens(const Model& model, std::string_view line, bool has_special) {
  return model.Tokenize(
      line, has_special ? ARN_TOKENIZE_NO_SPECIAL : ARN_TOKENIZE_NO_SPECIAL | ARN_TOKENIZE_PLAIN);
}

// A reply has line ends, so each line is a JSON string.
void ReadReplies(std::vector<std::string>* lines) {
  for (std::string& line : *lines) {
    const nlohmann::json value = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!value.is_string()) throw Error("--instances: with --tools each line is a JSON string");
    line = value.get<std::string>();
  }
}

Verdict Judge(const Model& model, arn_constraint* constraint, const std::string& line,
              bool has_special) {
  CheckStatus(arn_constraint_reset(constraint));
  const size_t valid = BadUtf8(line);
  const std::vector<int32_t> ids = Tokens(model, line.substr(0, valid), has_special);
  size_t n_accepted = 0;
  Verdict verdict;
  CheckStatus(
      arn_constraint_accept(constraint, ids.data(), ids.size(), &n_accepted, &verdict.offset));
  uint32_t can_end = 0;
  CheckStatus(arn_constraint_can_end(constraint, &can_end));
  verdict.is_accepted = n_accepted == ids.size() && can_end == 1 && valid == line.size();
  return verdict;
}

std::string JsonRefusal(const std::string& reason) {
  JsonWriter json;
  json.BeginObject().Key("compiled").Bool(false).Key("error").String(reason);
  return json.EndObject().Finish();
}

int Check(const ConstrainArguments& arguments) {
  const Model model = OpenTokenizer(arguments);
  const ConstraintText text(arguments.constraint);
  std::vector<std::string> lines = ReadLines(arguments.instances);
  if (text.is_tool_calls()) ReadReplies(&lines);
  std::string reason;
  const ConstraintHandle constraint = Compile(model, text, /*any_spelling=*/true, &reason);
  if (constraint == nullptr) {
    Print(arguments.json ? JsonRefusal(reason) : "refused: " + reason + "\n");
    return kExitRefusedConstraint;
  }
  std::string out;
  bool all_accepted = true;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Verdict verdict = Judge(model, constraint.get(), lines[i], text.is_tool_calls());
    all_accepted = all_accepted && verdict.is_accepted;
    if (arguments.json) {
      JsonWriter json;
      json.BeginObject().Key("line").Uint(i + 1).Key("accepted").Bool(verdict.is_accepted);
      json.Key("offset").Uint(verdict.offset);
      out += json.EndObject().Finish();
    } else {
      out += verdict.is_accepted ? "accepted\n"
                                 : Format("refused at byte %llu\n",
                                          static_cast<unsigned long long>(verdict.offset));
    }
  }
  const arn_constraint_stats_data stats = StatsOf(constraint.get());
  if (arguments.json) {
    JsonWriter json;
    json.BeginObject().Key("compiled").Bool(true);
    WriteConstraint(stats, &json);
    out = json.EndObject().Finish() + out;
  } else {
    out = Format("compiled in %.1f us, %llu bytes\n", static_cast<double>(stats.compile_ns) / 1e3,
                 static_cast<unsigned long long>(stats.bytes)) +
          out;
  }
  Print(out);
  return all_accepted ? 0 : kExitRefusedText;
}

// Microseconds of this thread's CPU time: other programs do not count.
double CpuMicroseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

class Times {
 public:
  template <typename Call>
  void Add(const Call& call) {
    const double start = CpuMicroseconds();
    call();
    us_.push_back(CpuMicroseconds() - start);
  }
  // Returns the least time that the share of all times does not exceed.
  double Percentile(double share) const {
    if (us_.empty()) return 0;
    std::vector<double> sorted = us_;
    std::sort(sorted.begin(), sorted.end());
    const double place = share * static_cast<double>(sorted.size());
    const auto index = static_cast<size_t>(place);
    return sorted[std::min(index, sorted.size() - 1)];
  }
  size_t count() const { return us_.size(); }
  const std::vector<double>& all() const { return us_; }

 private:
  std::vector<double> us_;
};

constexpr double kShares[] = {0.5, 0.99, 0.999, 1.0};
constexpr const char* kShareNames[] = {"p50_us", "p99_us", "p999_us", "max_us"};

struct Measured {
  Times compile;
  Times test;   // of the token that comes next, and reading it
  Times mask;   // of all tokens
  Times first;  // test and mask at the first token of a text
  arn_constraint_stats_data stats = ARN_CONSTRAINT_STATS_INIT;
};

// Reads one text. ids: its tokens, or empty: at most n_tokens random ones of the mask.
void MeasureText(const Model& model, arn_constraint* constraint, const std::vector<int32_t>& ids,
                 uint32_t n_tokens, std::mt19937_64* random, Measured* out) {
  std::vector<uint32_t> bits((model.info().vocab + 31) / 32);
  CheckStatus(arn_constraint_reset(constraint));
  const size_t n = ids.empty() ? n_tokens : ids.size();
  for (size_t i = 0; i < n; ++i) {
    const auto mask = [&] {
      CheckStatus(arn_constraint_mask(constraint, bits.data(), bits.size()));
    };
    if (i == 0) {
      out->first.Add(mask);
    } else {
      out->mask.Add(mask);
    }
    int32_t id = 0;
    if (!ids.empty()) {
      id = ids[i];
    } else {
      std::vector<int32_t> allowed;
      for (uint32_t t = 0; t < model.info().vocab; ++t) {
        if ((bits[t / 32] >> (t % 32) & 1) == 0) continue;
        const uint32_t* ends = model.info().eos_ids + model.info().n_eos_ids;
        if (std::find(model.info().eos_ids, ends, t) == ends) {
          allowed.push_back(static_cast<int32_t>(t));
        }
      }
      if (allowed.empty()) return;
      id = allowed[(*random)() % allowed.size()];
    }
    size_t n_accepted = 0;
    out->test.Add([&] {
      uint32_t is_allowed = 0;
      CheckStatus(arn_constraint_test(constraint, id, &is_allowed));
      CheckStatus(arn_constraint_accept(constraint, &id, 1, &n_accepted, nullptr));
    });
    if (n_accepted == 0) return;
  }
}

void PrintTimes(Measured* measured, bool as_json, bool with_all) {
  struct Row {
    const char* name;
    Times* times;
  } const rows[] = {{"compile", &measured->compile},
                    {"first_mask", &measured->first},
                    {"test", &measured->test},
                    {"mask", &measured->mask}};
  if (as_json) {
    JsonWriter json;
    json.BeginObject().Key("compiled").Bool(true).Key("bytes").Uint(measured->stats.bytes);
    for (const Row& row : rows) {
      json.Key(row.name).BeginObject().Key("count").Uint(row.times->count());
      for (size_t i = 0; i < std::size(kShares); ++i) {
        json.Key(kShareNames[i]).Number(row.times->Percentile(kShares[i]));
      }
      if (with_all) {
        json.Key("times_us").BeginArray();
        for (const double us : row.times->all()) json.Number(us);
        json.EndArray();
      }
      json.EndObject();
    }
    Print(json.EndObject().Finish());
    return;
  }
  std::string text =
      Format("%-12s %8s %10s %10s %10s %10s\n", "us", "count", "p50", "p99", "p99.9", "max");
  for (const Row& row : rows) {
    text += Format("%-12s %8zu", row.name, row.times->count());
    for (const double share : kShares) text += Format(" %10.2f", row.times->Percentile(share));
    text += "\n";
  }
  text += Format("%llu bytes\n", static_cast<unsigned long long>(measured->stats.bytes));
  Print(text);
}

int BenchConstraint(const ConstrainArguments& arguments) {
  const Model model = OpenTokenizer(arguments);
  const ConstraintText text(arguments.constraint);
  constexpr int kCompiles = 20;
  Measured measured;
  ConstraintHandle constraint;
  for (int i = 0; i < kCompiles; ++i) {
    std::string reason;
    constraint.reset();
    measured.compile.Add([&] { constraint = Compile(model, text, false, &reason); });
    if (constraint != nullptr) continue;
    Print(arguments.json ? JsonRefusal(reason) : "refused: " + reason + "\n");
    return kExitRefusedConstraint;
  }
  std::mt19937_64 random(arguments.seed);
  if (arguments.instances.empty()) {
    // Texts of random tokens, until there are enough.
    for (size_t before = SIZE_MAX; measured.test.count() < arguments.tokens;) {
      if (measured.test.count() == before) break;
      before = measured.test.count();
      const auto left = static_cast<uint32_t>(arguments.tokens - before);
      MeasureText(model, constraint.get(), {}, left, &random, &measured);
    }
  } else {
    std::vector<std::string> lines = ReadLines(arguments.instances);
    if (text.is_tool_calls()) ReadReplies(&lines);
    for (const std::string& line : lines) {
      const std::vector<int32_t> ids = Tokens(model, line, text.is_tool_calls());
      if (!ids.empty()) MeasureText(model, constraint.get(), ids, 0, &random, &measured);
    }
  }
  measured.stats = StatsOf(constraint.get());
  PrintTimes(&measured, arguments.json, arguments.times);
  return 0;
}

}  // namespace

std::vector<Command> AddConstrain(CLI::App* app) {
  CLI::App* sub = app->add_subcommand(
      "constrain", "Tests texts against a JSON schema, a regular expression, a grammar or tools");
  sub->require_subcommand(1);
  const auto arguments = std::make_shared<ConstrainArguments>();
  const auto add = [&](const char* name, const char* description) {
    CLI::App* one = sub->add_subcommand(name, description);
    AddConstraintOptions(one, &arguments->constraint, 1);
    one->add_option("--tokenizer", arguments->bundle, "Bundle whose tokens are used")->required();
    one->add_flag("--json", arguments->json, "Prints JSON, one object a line");
    return one;
  };
  CLI::App* check = add("check", "Prints for each line of a file whether the constraint allows it");
  check
      ->add_option("--instances", arguments->instances,
                   "Texts, one a line; each must be allowed token by token, and may end then")
      ->required();
  check->footer(
      "The first line of the output says whether the constraint was compiled. Exit codes: 0 all\n"
      "accepted, 1 some refused, 2 the constraint was refused. Example:\n"
      "  arenite constrain check --json-schema s.json --instances i.jsonl --tokenizer model.arn");
  CLI::App* bench = add("bench", "Measures compiling, testing a token and testing all tokens");
  bench->add_option("--instances", arguments->instances,
                    "Texts to read, one a line; without: random tokens");
  bench->add_option("--tokens", arguments->tokens, "Random tokens to read")->capture_default_str();
  bench->add_option("--seed", arguments->seed, "Of the random tokens")->capture_default_str();
  bench->add_flag("--times", arguments->times, "With --json: all the times too");
  bench->footer("Example:\n  arenite constrain bench --regex \"[a-z]+\" --tokenizer model.arn");
  return {{check, [arguments] { return Check(*arguments); }},
          {bench, [arguments] { return BenchConstraint(*arguments); }}};
}

}  // namespace arn::tool
