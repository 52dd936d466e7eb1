// States in a group's slots (kernels/contract/kv_view.h): words of one layer's part. Uses the push constants
// layer, group and state_at (first float of the step's state within the layer's).

// Slot of the sequence's state before its first row of the run, or kNoSlot, and slot for the new
// state. They never overlap.
uint state_words(uint slot) {
  return push.active_pool.at + slot * push.active_pool.page_stride +
         push.layer * push.active_pool.layer_stride + push.state_at;
}
uint slot_before(uint sequence) { return run[table_at(sequence, push.group) + kGroupSlotBefore]; }
uint slot_after(uint sequence) { return run[table_at(sequence, push.group) + kGroupSlotAfter]; }

// Float i of the state before the run; 0 if there is no state.
float state_before(uint slot, uint i) {
  return slot == kNoSlot ? 0.0 : uintBitsToFloat(kv_word(state_words(slot) + i));
}
void put_state(uint slot, uint i, float x) { kv_put(state_words(slot) + i, floatBitsToUint(x)); }
