package org.arenite;

import java.util.ArrayList;
import java.util.List;

/**
 * A session, which runs a model: KV cache, sampling, text.
 *
 * <p>In one call at a time, whatever thread makes it: a second one is refused with
 * Status.BAD_STATE. {@link #cancel} and {@link #close} may be called from any thread at any time.
 * Calls that run the model take their time: not on an app's main thread.
 */
public final class Session implements AutoCloseable {
  private static final class SessionHandle extends Handle {
    private final Handle model;

    SessionHandle(Handle model, long pointer) {
      super("session", false, pointer);
      this.model = model;
    }

    @Override
    void destroy(long pointer) {
      Native.destroySession(pointer);
      model.release();
    }

    @Override
    void interrupt(long pointer) {
      Native.cancel(pointer);
    }
  }

  private final SessionHandle handle;
  private final Model model;
  private final int vocab;
  private volatile Thread caller; // that is in a call

  Session(Model model, SessionOptions options) {
    this.model = model;
    vocab = model.info().vocab;
    long parent = model.handle.acquire();
    long pointer = 0;
    try {
      pointer = Native.createSession(parent, options);
    } finally {
      if (pointer == 0) {
        model.handle.release();
      }
    }
    handle = new SessionHandle(model.handle, pointer);
  }

  /** Ends what runs, and the session. Its memory goes back to the system. */
  @Override
  public void close() {
    handle.close(caller);
  }

  /**
   * Ends the call that runs on another thread, within one layer's time: it throws an exception with
   * Status.CANCELLED. Without one, the next call that runs the model ends so.
   */
  public void cancel() {
    handle.signal();
  }

  private long acquire() {
    long session = handle.acquire();
    caller = Thread.currentThread();
    return session;
  }

  private void release() {
    caller = null;
    handle.release();
  }

  // ---- text

  /** Tokenizes the text as the beginning of one, and {@link #prefill}s it. */
  public void prefill(String text) {
    prefill(model.tokenize(text));
  }

  /** How tokens are chosen from now on. A new session is greedy; see {@link Model#sampling}. */
  public void setSampling(Sampling sampling) {
    long session = acquire();
    try {
      Native.setSampling(session, sampling);
    } finally {
      release();
    }
  }

  /** Makes the text that follows what was prefilled, and shows it piece by piece. */
  public GenerateResult generate(GenerateOptions options, TextListener listener) {
    return generatePieces(
        options, (token, utf8) -> utf8.length == 0 || listener.onText(Native.text(utf8)));
  }

  /** The same with tokens and bytes. */
  public GenerateResult generatePieces(GenerateOptions options, PieceListener listener) {
    byte[][] stops = new byte[options.stops.length][];
    for (int i = 0; i < stops.length; ++i) {
      stops[i] = Native.utf8(options.stops[i]);
    }
    GenerateResult result = new GenerateResult();
    long session = acquire();
    try {
      Native.generate(
          session,
          options.maxTokens,
          options.ignoreEos,
          stops,
          options.extraEosIds,
          listener,
          result);
    } finally {
      release();
    }
    return result;
  }

  // ---- tokens

  /** Appends tokens to the sequence and runs them. */
  public void prefill(int[] ids) {
    long session = acquire();
    try {
      Native.prefill(session, ids);
    } finally {
      release();
    }
  }

  /**
   * Makes the sequence hold exactly these tokens and computes only what is not there: how a
   * conversation goes on. Returns how many did not have to be computed.
   */
  public int follow(int[] ids) {
    long session = acquire();
    try {
      return Native.follow(session, ids);
    } finally {
      release();
    }
  }

  /** Starts the sequence after the beginning that came computed with the bundle. */
  public void usePrefix() {
    long session = acquire();
    try {
      Native.usePrefix(session);
    } finally {
      release();
    }
  }

  /** The source of the sequence, of models that have one of tokens. */
  public void encode(int[] ids) {
    long session = acquire();
    try {
      Native.encodeIds(session, ids);
    } finally {
      release();
    }
  }

  /** A source of features: frames of width numbers, one after the other. */
  public void encode(float[] features, int frames, int width) {
    long session = acquire();
    try {
      Native.encodeFeatures(session, features, frames, width);
    } finally {
      release();
    }
  }

  /** Chooses the next token, appends it and runs it. */
  public int decode() {
    long session = acquire();
    try {
      return Native.decode(session);
    } finally {
      release();
    }
  }

  /** Chooses the next token without running anything. */
  public int sample() {
    long session = acquire();
    try {
      return Native.sample(session);
    } finally {
      release();
    }
  }

  /** A copy of the logits after the last token, one for each of the vocabulary. */
  public float[] logits() {
    long session = acquire();
    try {
      return Native.logits(session, vocab);
    } finally {
      release();
    }
  }

  /** The tokens of the sequence. */
  public int[] tokens() {
    long session = acquire();
    try {
      return Native.tokens(session);
    } finally {
      release();
    }
  }

  /** How many these are. */
  public int length() {
    long session = acquire();
    try {
      return Native.length(session);
    } finally {
      release();
    }
  }

  /** Forgets the sequence. */
  public void reset() {
    long session = acquire();
    try {
      Native.reset(session);
    } finally {
      release();
    }
  }

  /** Forgets the tokens from position on. */
  public void rewind(int position) {
    long session = acquire();
    try {
      Native.rewind(session, position);
    } finally {
      release();
    }
  }

  /** The first position that {@link #rewind} can go to. */
  public int firstRewindPosition() {
    long session = acquire();
    try {
      return Native.firstRewindPosition(session);
    } finally {
      release();
    }
  }

  /** Gives the memory of unused KV pages back to the system, and returns how many bytes. */
  public long trim() {
    long session = acquire();
    try {
      return Native.trim(session);
    } finally {
      release();
    }
  }

  // ---- several sequences

  /** All other calls mean this sequence from now on. */
  public void select(int sequence) {
    long session = acquire();
    try {
      Native.select(session, sequence);
    } finally {
      release();
    }
  }

  /** The sequence that calls mean. */
  public int selected() {
    long session = acquire();
    try {
      return Native.selected(session);
    } finally {
      release();
    }
  }

  /** Makes the empty sequence to a copy of from, which shares its pages. */
  public void fork(int from, int to) {
    long session = acquire();
    try {
      Native.fork(session, from, to);
    } finally {
      release();
    }
  }

  /** Appends ids[i] to sequences[i], all in one run. */
  public void step(int[] sequences, int[] ids) {
    long session = acquire();
    try {
      Native.step(session, sequences, ids);
    } finally {
      release();
    }
  }

  /** Chooses, appends and runs a token for each of these sequences, all in one run. */
  public int[] decodeBatch(int[] sequences) {
    long session = acquire();
    try {
      return Native.decodeBatch(session, sequences);
    } finally {
      release();
    }
  }

  /** Searches on from the selected sequence; all that take part are empty afterwards. */
  public List<Beam> beamSearch(BeamOptions options) {
    int[] eos = options.extraEosIds == null ? new int[0] : options.extraEosIds;
    List<Beam> beams = new ArrayList<>();
    long session = acquire();
    try {
      int count = Native.beamSearch(session, options, eos);
      float[] score = new float[1];
      for (int i = 0; i < count; ++i) {
        int[] ids = Native.beam(session, i, score);
        beams.add(new Beam(ids, score[0]));
      }
    } finally {
      release();
    }
    return beams;
  }

  // ---- saving

  /** Saves all sequences to a file, which is replaced when the new one is whole. */
  public void save(String path) {
    long session = acquire();
    try {
      Native.save(session, Native.utf8(path));
    } finally {
      release();
    }
  }

  /** Saves all sequences to memory. */
  public byte[] saveBytes() {
    long session = acquire();
    try {
      return Native.saveBytes(session);
    } finally {
      release();
    }
  }

  /** Replaces all sequences by saved ones; a file that does not fit changes nothing. */
  public void restore(String path, int verify) {
    long session = acquire();
    try {
      Native.restore(session, Native.utf8(path), verify);
    } finally {
      release();
    }
  }

  /** The same from what {@link #saveBytes} returned. */
  public void restoreBytes(byte[] data, int verify) {
    long session = acquire();
    try {
      Native.restoreBytes(session, data, verify);
    } finally {
      release();
    }
  }

  // ---- counters

  /** Counters since the session was made or {@link #resetStats}. */
  public Stats stats() {
    Stats stats = new Stats();
    long session = acquire();
    try {
      Native.stats(session, stats);
    } finally {
      release();
    }
    return stats;
  }

  /** Sets the token and time counters to zero. */
  public void resetStats() {
    long session = acquire();
    try {
      Native.resetStats(session);
    } finally {
      release();
    }
  }
}
