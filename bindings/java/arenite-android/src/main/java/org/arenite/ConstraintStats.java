// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Cost of a constraint so far. The fields are those of arn_constraint_stats_data in arenite.h.
 */
public final class ConstraintStats {
  /** tokens read, end tokens included */
  public long steps;
  /** tokens tested one by one */
  public long candidatesTested;
  /** tests of all tokens at once */
  public long masks;
  /** tokens that were appended without asking the model */
  public long forcedTokens;
  public long compileNs;
  public long p50Ns;
  public long p99Ns;
  public long p999Ns;
  /** per token */
  public long maxNs;
  /** of the block in use */
  public long bytes;
}
