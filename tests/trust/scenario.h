// A part of the C API's life under failing calls. Each runs in a process of its own:
//
//   SetUp           nothing fails
//   Try             one call of a class fails, or all from one on
//   Unchanged       after a failure, nothing fails: what was there before is there still
//   Try             again: works
//   Result          what a success gives: the same bytes in every run
//   TearDown        afterwards as much is held as in a run without a failure
#pragma once

#include <arenite/arenite.h>

#include <memory>
#include <string>
#include <vector>

namespace arn::test {

// Without memory of the heap, whose calls are counted while it is filled.
struct Outcome {
  Outcome(arn_status given, const char* text) : status(given) {
    for (size_t i = 0; i + 1 < sizeof message && text[i] != '\0'; ++i) message[i] = text[i];
  }
  arn_status status;
  char message[512] = "";  // the library's, of a failure
};

class Scenario {
 public:
  virtual ~Scenario() = default;
  virtual void SetUp() {}
  virtual Outcome Try() = 0;
  // Returns what has changed although it failed; "" if nothing.
  virtual std::string Unchanged() { return ""; }
  virtual std::string Result() = 0;
  virtual void TearDown() = 0;
};

struct NamedScenario {
  const char* name;
  std::unique_ptr<Scenario> (*make)(const std::string& folder);
};

// In the folder: text.arn with text.lora.arn, vectors.arn, speech.arn, image.arn.
std::vector<NamedScenario> SessionScenarios();
std::vector<NamedScenario> TextScenarios();
std::vector<NamedScenario> SkillScenarios();

// What the scenarios are made of. Ends the process if `status`, of a call that nothing fails, is an
// error.
void Need(arn_status status, const char* what, const char* message = "");

}  // namespace arn::test
