package org.arenite;

/** Receives the pieces of a text as bytes, on the thread that called generate. */
public interface PieceListener {
  /**
   * Called for each token.
   *
   * @param token its id, or -1 for text held back until the end
   * @param utf8 text that can be shown now: whole characters, possibly none
   * @return true to go on, false to end after this token
   */
  boolean onPiece(int token, byte[] utf8);
}
