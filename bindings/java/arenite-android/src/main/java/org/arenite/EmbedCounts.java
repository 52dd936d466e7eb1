// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Counts of an embedder's last call. The fields are those of arn_embed_counts in arenite.h. */
public final class EmbedCounts {
  /** run, special tokens included */
  public long nTokens;
  /** longer than max_tokens */
  public long nCutTexts;
  /** time */
  public long ns;
}
