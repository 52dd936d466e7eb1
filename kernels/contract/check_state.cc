#include "kernels/contract/check_state.h"

namespace arn {

Status CheckStateTable(const Program& program, uint32_t group, const SequenceRows& rows,
                       Diag* diag) {
  const PageTable& table = rows.tables[group];
  const uint32_t n_slots = program.kv_groups[group].active.n_pages;
  const uint32_t n = rows.first_position == 0 ? 1 : 2;
  if (table.pages == nullptr || table.first_page != 0 || table.n_pages < n) {
    return diag->Fail(Status::kInternal, "state group %u: %u slots from %u on, a run needs %u",
                      group, table.n_pages, table.first_page, n);
  }
  const uint32_t from = table.pages[0], to = table.pages[table.n_pages - 1];
  if (to >= n_slots || from >= n_slots || (n == 2 && from == to)) {
    return diag->Fail(Status::kInternal, "state group %u: slots %u and %u of %u", group, from, to,
                      n_slots);
  }
  return Status::kOk;
}

}  // namespace arn
