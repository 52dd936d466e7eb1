// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Sampling parameters. The defaults are greedy. The fields are those of arn_sampling in arenite.h.
 */
public final class Sampling {
  /** 0: greedy */
  public float temperature;
  /** 0: off */
  public int topK;
  /** 1: off */
  public float topP = 1.0f;
  /** 0: off */
  public float minP;
  /** the same seed gives the same tokens for any number of threads */
  public long seed;
}
