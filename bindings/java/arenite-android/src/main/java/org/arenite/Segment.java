package org.arenite;

/** A part of the speech. */
public final class Segment {
  /** Seconds from the beginning of the audio. */
  public final double startS;

  /** Seconds from the beginning of the audio, at most its length. */
  public final double endS;

  /** As the model writes it: a space comes first as a rule. "" without a tokenizer. */
  public final String text;

  /** Tokens, with the times around the text. */
  public final int[] ids;

  Segment(double startS, double endS, String text, int[] ids) {
    this.startS = startS;
    this.endS = endS;
    this.text = text;
    this.ids = ids;
  }
}
