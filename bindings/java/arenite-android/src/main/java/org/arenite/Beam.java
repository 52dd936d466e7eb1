package org.arenite;

/** A sequence found by beam search. */
public final class Beam {
  /** New tokens, including a final stop token. */
  public final int[] ids;
  /** Score: higher is more likely. */
  public final float score;

  Beam(int[] ids, float score) {
    this.ids = ids;
    this.score = score;
  }
}
