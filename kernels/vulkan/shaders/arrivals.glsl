// Lets the last workgroup to end continue with what all of them wrote: a dispatch and a barrier less.
// No workgroup waits for another one. What they write must be in buffers that are `coherent`.
layout(set = 0, binding = 10) coherent buffer Arrivals { uint arrivals[]; };
shared uint arrived_before;

// Counts a workgroup that has written its part. True in the last one of n, for all its invocations,
// which then see the parts of the others. The counter is 0 again for the next dispatch. REQUIRES: of
// a workgroup with ONE_SUBGROUP, that its first invocation wrote everything.
bool is_last_of(uint n, uint counter) {
  uint before = 0;
  memoryBarrierBuffer();
  if (ONE_SUBGROUP == 0) barrier();
  if (gl_LocalInvocationIndex == 0) {
    before = atomicAdd(arrivals[counter], 1);
    if (before == n - 1) arrivals[counter] = 0;
    arrived_before = before;
  }
#ifdef ARN_SUBGROUP
  if (ONE_SUBGROUP == 1) {
    before = subgroupMax(before);
    subgroupBarrier();
    memoryBarrierBuffer();
    return before == n - 1;
  }
#endif
  barrier();
  memoryBarrierBuffer();
  return arrived_before == n - 1;
}
