// Computes the flags that depend on rules, once all rules are defined.
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/constrain/terms.h"

namespace arn {
namespace {

// Derivatives of a term may be nested deeper than the term.
constexpr uint32_t kMaxResolvedDepth = Terms::kMaxDepth - 50;

}  // namespace

StringView Terms::RuleName(const Node& n) const {
  StringView name;
  std::memcpy(static_cast<void*>(&name), words_ + n.b, sizeof name);
  return name;
}

Status Terms::Resolve(Term root, Diag* diag) {
  const auto refuse = [&](Term rule, const char* why) {
    const StringView name = RuleName(node(rule));
    return diag->Fail(Status::kBadArgument, "rule '%.*s' %s",
                      static_cast<int>(Min<size_t>(name.size, 100)), name.data, why);
  };
  const auto refuse_size = [&] {
    return diag->Fail(TermFailureStatus(failure()), "the constraint %s", FailureText());
  };
  if (failed()) return refuse_size();
  Collect({&root, 1});
  const auto is_rule = [this](Term t) { return node(t).kind == kRule; };
  for (Term t = 0; t < n_cells_; ++t) {
    if (is_rule(t) && node(t).c == 0) return refuse(t, "is used but not defined");
  }
  SpreadFlags();
  for (Term t = 0; t < n_cells_; ++t) {
    if (is_rule(t) && !IsProductive(t)) return refuse(t, "matches no text: it never ends");
  }
  for (Term t = 0; t < n_cells_; ++t) {
    if (!is_rule(t)) continue;
    FirstBytes(t);
    if (looping_rule_ != kNothing) {
      return refuse(looping_rule_, "begins with itself through other rules (left recursion)");
    }
    if (failed()) break;
  }
  if (!failed() && IsNestedTooDeep()) Fail(TermFailure::kTooDeep);
  if (failed()) return refuse_size();
  return Status::kOk;
}

// The least solution: starts from "not nullable, no string" for rules, and only adds. Parts have
// lower numbers than terms made of them, so a pass settles everything but rules used early.
void Terms::SpreadFlags() {
  for (bool changed = true; changed;) {
    changed = false;
    for (Term t = 0; t < n_cells_; ++t) {
      Node& n = node(t);
      if (n.kind < kConcat || (n.flags & kHasRule) == 0) continue;
      const uint8_t added = FlagsOf(n) & static_cast<uint8_t>(~n.flags);
      n.flags |= added;
      changed |= added != 0;
    }
  }
}

// Levels that begin at the same byte, counted in `visit`. Ends, because no rule begins with itself.
bool Terms::IsNestedTooDeep() {
  uint32_t deepest = 0;
  for (bool changed = true; changed && deepest <= kMaxResolvedDepth;) {
    changed = false;
    for (Term t = 0; t < n_cells_; ++t) {
      Node& n = node(t);
      if (n.kind < kConcat) continue;
      const uint32_t depth = DepthOf(n);
      if (depth <= n.visit) continue;
      n.visit = static_cast<uint16_t>(depth);
      deepest = Max(deepest, depth);
      changed = true;
    }
  }
  for (Term t = 0; t < n_cells_; ++t) {
    if (node(t).kind >= kConcat) node(t).visit = 0;
  }
  return deepest > kMaxResolvedDepth;
}

uint32_t Terms::DepthOf(const Node& n) const {
  const auto depth = [this](Term t) -> uint32_t { return node(t).visit; };
  uint32_t parts = 0;
  switch (n.kind) {
    case kFree:
    case kEdgeList:
    case kNothingKind:
    case kEmptyKind:
    case kBytes:
    case kCustom: break;
    case kConcat:  // a nullable head's tail is derived in the same loop
      return Max(depth(n.a) + 1, IsNullable(n.a) ? depth(n.b) : 0);
    case kEither:
    case kBoth:
      for (const Term t : args(n)) parts = Max(parts, depth(t));
      break;
    case kRepeat:
    case kComplement:
    case kRule: parts = depth(n.a); break;
  }
  return parts + 1;
}

}  // namespace arn
