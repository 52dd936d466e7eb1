// The states of a group's slots (kernels/kv_view.h): the words of one layer's part of them. A step's
// push constants are layer, group and state_at, the float of the layer's state where its own begin.
const uint kNoSlot = 0xffffffffu;

// Where the sequence's state lies before the run's first row of it, or kNoSlot, and where it goes.
// They never overlap.
uint state_words(uint slot) {
  return OPEN_POOL + slot * OPEN_PAGE + push.layer * OPEN_LAYER + push.state_at;
}
uint slot_before(uint sequence) { return run[table_at(sequence, push.group) + 2]; }
uint slot_after(uint sequence) { return run[table_at(sequence, push.group) + 3]; }

// Float i of a state before the run; zeros if there is none.
float state_before(uint slot, uint i) {
  return slot == kNoSlot ? 0.0 : uintBitsToFloat(kv_word(state_words(slot) + i));
}
void put_state(uint slot, uint i, float x) { kv_put(state_words(slot) + i, floatBitsToUint(x)); }
