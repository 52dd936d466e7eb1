// Tells if the library has texts for people (ARENITE_DESCRIPTIONS): the dump of a program, and what
// each sampling option does.
#pragma once

namespace arn {

#ifdef ARENITE_NO_DESCRIPTIONS
inline constexpr bool kHasDescriptions = false;
#else
inline constexpr bool kHasDescriptions = true;
#endif

}  // namespace arn
