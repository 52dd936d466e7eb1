// Says what guessing may cost: constants of the policies' accounts, in plain steps.
#pragma once

#include <cstdint>

namespace arn {

// Starts the account: so much may be lost at first.
inline constexpr double kFirstCredit = 1.5;
// Credit that a plain step adds: guessing may cost this share of the time.
inline constexpr double kCreditPerStep = 0.01;
// Limits how much of what right guesses gained may be lost again.
inline constexpr double kMostCredit = 4.0;
// Credit left over that pays for a guess that is not expected to pay, to see whether that changed.
inline constexpr double kProbeCredit = 1.0;
// Runs with guesses after which a plain one is measured again, unless guesses gain at least this
// much: a mean from a busy moment would make every guess look free.
inline constexpr uint32_t kMostRunsWithout = 16;
inline constexpr double kClearGain = 1.5;

}  // namespace arn
