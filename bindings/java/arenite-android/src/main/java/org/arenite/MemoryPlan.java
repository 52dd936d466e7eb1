// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * The bytes that a session takes, by region. The fields are those of arn_memory_plan in arenite.h.
 */
public final class MemoryPlan {
  /** of the bundle; read-only, shared, not part of the block */
  public long weightsBytes;
  /** session state, tables, repacked weights */
  public long constantsBytes;
  /** part of constants_bytes: weights repacked for this CPU */
  public long repackedBytes;
  /** reserved; committed as tokens are added */
  public long kvBytes;
  public long kvBytesPerToken;
  public long activationsBytes;
  public long ioBytes;
  public long totalBytes;
  /** of the block */
  public long alignment;
  /** options after defaults are applied */
  public int contextTokens;
  /** the most, where a GPU chooses */
  public int prefillChunk;
  public int nThreads;
  public int kvPageTokens;
  public int maxSequences;
  public int kvTokens;
  /** see arn_session_plan_group */
  public int nKvGroups;
  public int nPrefillThreads;
  /** performance CPUs that the process may use */
  public int nPerformanceCpus;
  /**
   * 1: there are other CPUs too, and threads stay on the performance CPUs, the calling thread
   * during calls. 0: all CPUs are alike, or more threads were requested than there are performance
   * CPUs; the system places them.
   */
  public boolean keepsToPerformanceCpus;
  /**
   * VULKAN, AUTO, VULKAN_CPU: all buffers on the device: weights, KV pages, activations, logits,
   * run parameters, and a staging buffer.
   */
  public long deviceBytes;
  /**
   * Residency.COPIED: the model's copy of the bundle, in whole pages. Not part of the block,
   * allocated once for all sessions. 0: no copy.
   */
  public long copiedBytes;
  /** part of io_bytes: constraints, and a copy of the logits for them */
  public long constraintsBytes;
  /** part of kv_bytes: slots for snapshots of recurrent states */
  public long snapshotsBytes;
  /** per sequence; 0 without recurrent states, and with no_cache */
  public int stateSnapshots;
  public int snapshotEvery;
  /**
   * part of io_bytes: the index of n-grams (of each sequence with max_requests), logits of
   * guesses, and draft_bytes
   */
  public long speculationBytes;
  /** 0: no speculation */
  public int maxGuesses;
  public int nAdapters;
  /**
   * part of constants_bytes and activations_bytes: tables of adapters, and rows between two
   * matrices
   */
  public long adaptersBytes;
  /** of the adapters' bundles, which are mapped; not part of the block */
  public long adapterFilesBytes;
  /** part of io_bytes: of embedding_rows */
  public long embeddingsBytes;
  public int embeddingRows;
  /**
   * part of speculation_bytes: cache, activations and all else of the draft model but its bundle,
   * or of the head of Speculate.MTP
   */
  public long draftBytes;
  /**
   * of the draft's bundle; not part of the block. Of a head: what weights_bytes has for it alone
   */
  public long draftWeightsBytes;
  /** part of io_bytes: requests, their events and texts */
  public long schedulerBytes;
  public int maxRequests;
  /**
   * Part of device_bytes: weights in the device's layout (arenite-convert --target vulkan). Where
   * the device shares the host's memory and its driver can, it reads them in the bundle's own
   * pages: they take no memory of their own then (arn_backend_info.imported_bytes).
   */
  public long importableBytes;
}
