package org.arenite;

/** A sequence that a beam search found. */
public final class Beam {
  /** Its new tokens, an end token included. */
  public final int[] ids;
  /** Its score: the higher, the likelier. */
  public final float score;

  Beam(int[] ids, float score) {
    this.ids = ids;
    this.score = score;
  }
}
