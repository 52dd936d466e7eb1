package org.arenite;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;

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

  private <T> T get(LongFunction<T> call) {
    long session = handle.acquire();
    caller = Thread.currentThread();
    try {
      return call.apply(session);
    } finally {
      caller = null;
      handle.release();
    }
  }

  private void run(LongConsumer call) {
    get(
        session -> {
          call.accept(session);
          return null;
        });
  }

  // ---- text

  /** Tokenizes the text as the beginning of one, and {@link #prefill}s it. */
  public void prefill(String text) {
    prefill(model.tokenize(text));
  }

  /** How tokens are chosen from now on. A new session is greedy; see {@link Model#sampling}. */
  public void setSampling(Sampling sampling) {
    run(session -> Native.setSampling(session, sampling));
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
    run(
        session ->
            Native.generate(
                session,
                options.maxTokens,
                options.ignoreEos,
                stops,
                options.extraEosIds,
                listener,
                result));
    return result;
  }

  // ---- tokens

  /** Appends tokens to the sequence and runs them. */
  public void prefill(int[] ids) {
    run(session -> Native.prefill(session, ids));
  }

  /**
   * Makes the sequence hold exactly these tokens and computes only what is not there: how a
   * conversation goes on. Returns how many did not have to be computed.
   */
  public int follow(int[] ids) {
    return get(session -> Native.follow(session, ids));
  }

  /** Starts the sequence after the beginning that came computed with the bundle. */
  public void usePrefix() {
    run(Native::usePrefix);
  }

  /** The source of the sequence, of models that have one of tokens. */
  public void encode(int[] ids) {
    run(session -> Native.encodeIds(session, ids));
  }

  /** A source of features: frames of width numbers, one after the other. */
  public void encode(float[] features, int frames, int width) {
    run(session -> Native.encodeFeatures(session, features, frames, width));
  }

  /** Chooses the next token, appends it and runs it. */
  public int decode() {
    return get(Native::decode);
  }

  /** Chooses the next token without running anything. */
  public int sample() {
    return get(Native::sample);
  }

  /** A copy of the logits after the last token, one for each of the vocabulary. */
  public float[] logits() {
    return get(session -> Native.logits(session, vocab));
  }

  /**
   * {@link #prefill} of at most one chunk; returns the logits after each token, one row each. Needs
   * allLogits.
   */
  public float[] prefillLogits(int[] ids) {
    return get(session -> Native.prefillLogits(session, ids, vocab));
  }

  /** The tokens of the sequence. */
  public int[] tokens() {
    return get(Native::tokens);
  }

  /** How many these are. */
  public int length() {
    return get(Native::length);
  }

  /** Forgets the sequence. */
  public void reset() {
    run(Native::reset);
  }

  /** Forgets the tokens from position on. */
  public void rewind(int position) {
    run(session -> Native.rewind(session, position));
  }

  /** The first position that {@link #rewind} can go to. */
  public int firstRewindPosition() {
    return get(Native::firstRewindPosition);
  }

  /** Gives the memory of unused KV pages back to the system, and returns how many bytes. */
  public long trim() {
    return get(Native::trim);
  }

  // ---- several sequences

  /** All other calls mean this sequence from now on. */
  public void select(int sequence) {
    run(session -> Native.select(session, sequence));
  }

  /** The sequence that calls mean. */
  public int selected() {
    return get(Native::selected);
  }

  /** Makes the empty sequence to a copy of from, which shares its pages. */
  public void fork(int from, int to) {
    run(session -> Native.fork(session, from, to));
  }

  /** Appends ids[i] to sequences[i], all in one run. */
  public void step(int[] sequences, int[] ids) {
    run(session -> Native.step(session, sequences, ids));
  }

  /** Chooses, appends and runs a token for each of these sequences, all in one run. */
  public int[] decodeBatch(int[] sequences) {
    return get(session -> Native.decodeBatch(session, sequences));
  }

  /** Searches on from the selected sequence; all that take part are empty afterwards. */
  public List<Beam> beamSearch(BeamOptions options) {
    int[] eos = options.extraEosIds == null ? new int[0] : options.extraEosIds;
    return get(
        session -> {
          int count = Native.beamSearch(session, options, eos);
          List<Beam> beams = new ArrayList<>();
          float[] score = new float[1];
          for (int i = 0; i < count; ++i) {
            int[] ids = Native.beam(session, i, score);
            beams.add(new Beam(ids, score[0]));
          }
          return beams;
        });
  }

  // ---- saving

  /** Saves all sequences to a file, which is replaced when the new one is whole. */
  public void save(String path) {
    run(session -> Native.save(session, Native.utf8(path)));
  }

  /** Saves all sequences to memory. */
  public byte[] saveBytes() {
    return get(Native::saveBytes);
  }

  /** Replaces all sequences by saved ones; a file that does not fit changes nothing. */
  public void restore(String path, int verify) {
    run(session -> Native.restore(session, Native.utf8(path), verify));
  }

  /** The same from what {@link #saveBytes} returned. */
  public void restoreBytes(byte[] data, int verify) {
    run(session -> Native.restoreBytes(session, data, verify));
  }

  // ---- looking at the cache

  /** What {@link #keys} and {@link #values} can read of a layer. */
  public KvLayer kvLayer(int layer) {
    KvLayer info = new KvLayer();
    run(session -> Native.kvLayer(session, layer, info));
    return info;
  }

  /**
   * The keys that a layer keeps of n tokens from position first on, [nKvHeads, n, headDim], turned
   * by RoPE.
   */
  public float[] keys(int layer, int first, int n) {
    return get(session -> Native.readKv(session, layer, first, n, true));
  }

  /** The values, likewise. */
  public float[] values(int layer, int first, int n) {
    return get(session -> Native.readKv(session, layer, first, n, false));
  }

  // ---- what it runs on, and counters

  /** What computes its tokens, and why it is not the device that was asked for. */
  public BackendInfo backend() {
    BackendInfo info = new BackendInfo();
    run(session -> Native.backend(session, info));
    return info;
  }

  /** What its threads are to run on, and what the system lets them. */
  public SessionCpus cpus() {
    SessionCpus cpus = new SessionCpus();
    run(session -> Native.cpus(session, cpus));
    return cpus;
  }

  /** The thermal zones, read anew; none unless the session was made with sensors. */
  public List<ThermalZone> thermalZones() {
    int count = stats().nThermalZones;
    List<ThermalZone> zones = new ArrayList<>();
    for (int i = 0; i < count; ++i) {
      int index = i;
      ThermalZone zone = new ThermalZone();
      run(session -> Native.thermalZone(session, index, zone));
      zones.add(zone);
    }
    return zones;
  }

  /** Counters since the session was made or {@link #resetStats}. */
  public Stats stats() {
    Stats stats = new Stats();
    run(session -> Native.stats(session, stats));
    return stats;
  }

  /** Sets the token and time counters to zero. */
  public void resetStats() {
    run(Native::resetStats);
  }
}
