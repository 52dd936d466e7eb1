// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Options of an embedder. Zeros are defaults. The fields are those of arn_embed_options in
 * arenite.h.
 */
public final class EmbedOptions {
  /** Backend.CPU, Backend.REFERENCE or Backend.VULKAN; others: Status.UNSUPPORTED */
  public Backend backend = Backend.CPU;
  /** of a text, special tokens included; 0: the model's */
  public int maxTokens;
  /** of the texts of a run, at least max_tokens; 0: max_tokens, at least 512 */
  public int batchTokens;
  /** of a run; 0: 32 */
  public int maxTexts;
  /** 0: as many as there are performance CPUs */
  public int nThreads;
  /**
   * Cuts vectors to their first elements, and normalises what is left if the model does
   * (Matryoshka). 0: whole.
   */
  public int width;
  /**
   * longest text with its prompt, or pair, in bytes; 0: 32 for each of max_tokens, and 16 KiB
   */
  public long textBytes;
}
