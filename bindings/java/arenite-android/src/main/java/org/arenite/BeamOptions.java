// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Options of a beam search. The fields are those of arn_beam_options in arenite.h. */
public final class BeamOptions {
  /** 1 .. max_sequences */
  public int numBeams = 1;
  /** divides num_beams */
  public int numBeamGroups = 1;
  /** &gt;= 0; 0 with one group */
  public float diversityPenalty;
  /** score = sum of log-probabilities / tokens ^ length_penalty */
  public float lengthPenalty = 1.0f;
  /** EarlyStopping */
  public EarlyStopping earlyStopping = EarlyStopping.FALSE;
  /** 1 .. num_beams */
  public int numReturnSequences = 1;
  /** new tokens per sequence; 0: as many as fit the context */
  public int maxTokens;
  /** 1: do not stop at stop tokens */
  public boolean ignoreEos;
  /** stop tokens besides the model's own; 16 in total at most */
  public int[] extraEosIds;
}
