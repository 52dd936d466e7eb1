package org.arenite;

/** A token and the natural logarithm of its probability. */
public final class TokenLogprob {
  public final int id;
  public final float logprob;

  TokenLogprob(int id, float logprob) {
    this.id = id;
    this.logprob = logprob;
  }
}
