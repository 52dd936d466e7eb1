// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * The bytes that an embedder takes, by region. The fields are those of arn_embed_plan_data in
 * arenite.h.
 */
public final class EmbedPlan {
  /** of the bundle; read-only, shared, not part of the block */
  public long weightsBytes;
  /** state, and weights repacked for this CPU */
  public long constantsBytes;
  /** part of constants_bytes */
  public long repackedBytes;
  /** of a run of batch_tokens */
  public long activationsBytes;
  /** texts, ids, the tokenizer's memory; reserved, committed on use */
  public long ioBytes;
  /** of the block */
  public long totalBytes;
  /** of the block */
  public long alignment;
  /** options after defaults are applied */
  public int maxTokens;
  public int batchTokens;
  public int maxTexts;
  public int nThreads;
  /** floats that a text or a pair gives */
  public int width;
}
