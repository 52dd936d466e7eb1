package org.arenite;

/**
 * Converts the tokens of one sequence to text as they arrive, in whole characters. A copy continues
 * independently, as a fork of the sequence does. The model must stay open.
 */
public final class Detokenizer {
  private static final int STATE_WORDS = 8; // of arn_detokenizer

  private final Model model;
  private final boolean skipSpecial;
  private final int[] state;

  Detokenizer(Model model, boolean skipSpecial, int[] state) {
    this.model = model;
    this.skipSpecial = skipSpecial;
    this.state = state == null ? new int[STATE_WORDS] : state.clone();
  }

  /** Returns the text that the next token completes. */
  public String next(int id) {
    long pointer = model.handle.acquire();
    try {
      return Native.text(Native.detokenizerNext(pointer, state, id, skipSpecial));
    } finally {
      model.handle.release();
    }
  }

  /** Ends the sequence and returns the remaining text; the next token starts a new sequence. */
  public String end() {
    long pointer = model.handle.acquire();
    try {
      return Native.text(Native.detokenizerEnd(pointer, state));
    } finally {
      model.handle.release();
    }
  }

  public Detokenizer copy() {
    return new Detokenizer(model, skipSpecial, state);
  }
}
