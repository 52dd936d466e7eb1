// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * The bytes that a session takes, by region. The fields are those of arn_memory_plan in arenite.h.
 */
public final class MemoryPlan {
  /** mapped from the bundle, read-only, shared; not part of the block */
  public long weightsBytes;
  /** session state, tables, repacked weights */
  public long constantsBytes;
  /** the part of constants_bytes that is weights packed anew for this CPU */
  public long repackedBytes;
  /** reserved; committed as tokens are used */
  public long kvBytes;
  public long kvBytesPerToken;
  public long activationsBytes;
  public long ioBytes;
  public long totalBytes;
  /** of the block */
  public long alignment;
  /** options as they will be applied */
  public int contextTokens;
  public int prefillChunk;
  public int nThreads;
  public int kvPageTokens;
  public int maxSequences;
  public int kvTokens;
  /** see arn_session_plan_group */
  public int nKvGroups;
  public int nPrefillThreads;
  /** that the process may use */
  public int nPerformanceCpus;
  /**
   * 1: there are other CPUs too, and threads stay on the performance CPUs, the calling thread
   * while it is in a call. 0: all CPUs are alike, or more threads were asked for than there are of
   * these; the system places them.
   */
  public boolean keepsToPerformanceCpus;
  /**
   * VULKAN, AUTO, VULKAN_CPU: of all buffers on the device: weights, KV pages, activations,
   * logits, what tells it of a run, and a staging buffer
   */
  public long deviceBytes;
}
