#include "runtime/constrain/json_schema/expand.h"

#include <algorithm>

#include "runtime/constrain/json_schema/disjoint.h"

namespace arn::json_schema {

Status Expander::AddAtom(Atom atom, Branch* branch) {
  ARN_TRY(atoms_.Append(context_.arena, {atom, branch->open}));
  branch->open = atoms_.size() - 1;
  return Status::kOk;
}

Status Expander::AddSchema(uint32_t schema, bool is_denied, Branch* branch) {
  Atom atom = 0;
  ARN_TRY(context_.SchemaAtom(schema, &atom));
  return AddAtom(is_denied ? Denial(atom) : atom, branch);
}

Status Expander::AddChoice(ChoiceKind kind, uint32_t value, Branch* branch) {
  ARN_TRY(choices_.Append(context_.arena, {kind, value, branch->choices}));
  branch->choices = choices_.size() - 1;
  return Status::kOk;
}

Status Expander::AddFact(const Fact& fact, uint32_t types, Branch* branch) {
  branch->types &= types;
  ARN_TRY(context_.Spend(1));
  ARN_TRY(facts_.Append(context_.arena, {fact, branch->facts}));
  branch->facts = facts_.size() - 1;
  return Status::kOk;
}

Status Expander::Push(const Branch& branch) {
  if (branch.types == 0) return Status::kOk;
  ARN_TRY(context_.Spend(4));
  return stack_.Append(context_.arena, branch);
}

void Expander::MarkFrom(uint32_t first) {
  for (uint32_t i = first; i < stack_.size(); ++i) {
    stack_[i].n_atoms = atoms_.size();
    stack_[i].n_choices = choices_.size();
    stack_[i].n_facts = facts_.size();
  }
}

// Looks at every atom of a branch; ends early with no types left if two contradict each other.
Status Expander::Drain(Branch* branch) {
  while (branch->open != kNone && branch->types != 0) {
    const AtomCell cell = atoms_[branch->open];
    branch->open = cell.next;
    uint32_t n = 1;
    bool is_known = false;
    for (uint32_t c = branch->done; c != kNone && !is_known; c = atoms_[c].next) {
      is_known = atoms_[c].atom == cell.atom;
      if (atoms_[c].atom == Denial(cell.atom)) branch->types = 0;
      ++n;
    }
    ARN_TRY(context_.Spend(n));
    if (is_known || branch->types == 0) continue;
    ARN_TRY(atoms_.Append(context_.arena, {cell.atom, branch->done}));
    branch->done = atoms_.size() - 1;
    ARN_TRY(Assert(cell.atom, branch));
  }
  return Status::kOk;
}

// Takes the oldest choice that is not a denial, else the oldest: what is affirmed decides most
// denials.
Status Expander::TakeChoice(Branch* branch, ChoiceCell* out) {
  uint32_t chosen = branch->choices;
  for (uint32_t c = branch->choices; c != kNone; c = choices_[c].next) {
    const bool is_denial = choices_[c].kind == ChoiceKind::kDenied;
    if (!is_denial || choices_[chosen].kind == ChoiceKind::kDenied) chosen = c;
  }
  // Other branches share the cells in front of it: copies them.
  order_.Clear();
  for (uint32_t c = branch->choices; c != chosen; c = choices_[c].next) {
    ARN_TRY(order_.Append(context_.arena, c));
  }
  ARN_TRY(context_.Spend(order_.size()));
  branch->choices = choices_[chosen].next;
  while (!order_.empty()) {
    const ChoiceCell cell = choices_[order_.Pop()];
    ARN_TRY(AddChoice(cell.kind, cell.value, branch));
  }
  *out = choices_[chosen];
  return Status::kOk;
}

Status Expander::Conclude(const Branch& branch, Finish finish, void* self) {
  concluded_.Clear();
  uint32_t n = 0;
  for (uint32_t f = branch.facts; f != kNone; f = facts_[f].next) ++n;
  ARN_TRY(concluded_.Reserve(context_.arena, n));
  for (uint32_t f = branch.facts; f != kNone; f = facts_[f].next) {
    ARN_TRY(context_.Spend(1));
    ARN_TRY(concluded_.Append(context_.arena, facts_[f].fact));
  }
  std::reverse(concluded_.begin(), concluded_.end());
  return finish(self, branch.types, concluded_.span());
}

Status Expander::Run(Span<const Atom> atoms, Finish finish, void* self) {
  atoms_.Clear();
  choices_.Clear();
  facts_.Clear();
  stack_.Clear();
  Branch start;
  for (size_t i = atoms.size(); i > 0; --i) ARN_TRY(AddAtom(atoms[i - 1], &start));
  ARN_TRY(Push(start));
  MarkFrom(0);
  while (!stack_.empty()) {
    Branch branch = stack_.Pop();
    atoms_.Truncate(branch.n_atoms);
    choices_.Truncate(branch.n_choices);
    facts_.Truncate(branch.n_facts);
    ARN_TRY(Drain(&branch));
    if (branch.types == 0) continue;
    if (branch.choices == kNone) {
      ARN_TRY(Conclude(branch, finish, self));
      continue;
    }
    ChoiceCell cell;
    ARN_TRY(TakeChoice(&branch, &cell));
    if (cell.kind == ChoiceKind::kDenied && IsBroken(cell.value, branch)) {
      ARN_TRY(Push(branch));
      MarkFrom(stack_.size() - 1);
      continue;
    }
    const uint32_t first = stack_.size();
    ARN_TRY(Choose(cell.kind, cell.value, branch));
    // The first alternative is to be popped first.
    std::reverse(stack_.begin() + first, stack_.end());
    MarkFrom(first);
  }
  return Status::kOk;
}

bool Expander::IsBroken(uint32_t schema, const Branch& branch) {
  for (uint32_t c = branch.done; c != kNone; c = atoms_[c].next) {
    const Atom atom = atoms_[c].atom;
    if (KindOf(atom) != AtomKind::kSchema || IsDenied(atom)) continue;
    if (AreDisjoint(&context_, ValueOf(atom), schema)) return true;
  }
  return false;
}

}  // namespace arn::json_schema
