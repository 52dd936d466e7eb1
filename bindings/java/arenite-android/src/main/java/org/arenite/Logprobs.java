package org.arenite;

/**
 * The log-probabilities of a generation's tokens: set {@link GenerateOptions#logprobs}, and read
 * them afterwards. A next generation replaces them.
 */
public final class Logprobs {
  final int nTop;
  int[] ids = {};
  float[] values = {};
  private int size;

  /** nTop: how many of the most likely tokens are kept for each new one. */
  public Logprobs(int nTop) {
    if (nTop < 0) throw new IllegalArgumentException("nTop is " + nTop + ", expected 0 or more");
    this.nTop = nTop;
  }

  /** Returns the number of tokens. */
  public int size() {
    return size;
  }

  /**
   * Returns the log-probability of the index-th new token, in the model's own distribution, and
   * behind it those of the nTop most likely ones, best first.
   */
  public TokenLogprob[] get(int index) {
    if (index < 0 || index >= size) {
      throw new IndexOutOfBoundsException("token " + index + " of " + size);
    }
    TokenLogprob[] row = new TokenLogprob[1 + nTop];
    for (int i = 0; i < row.length; ++i) {
      int at = index * row.length + i;
      row[i] = new TokenLogprob(ids[at], values[at]);
    }
    return row;
  }

  void begin(int maxTokens) {
    if (maxTokens <= 0) {
      throw new IllegalArgumentException("logprobs need maxTokens, which says how many are kept");
    }
    int n = Math.multiplyExact(maxTokens, 1 + nTop);
    size = 0;
    ids = new int[n];
    values = new float[n];
  }

  void end(long nTokens) {
    size = (int) nTokens;
  }
}
