package org.arenite;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;

/**
 * A session: runs a model with its own KV cache and sampling.
 *
 * <p>Allows one call at a time, from any thread; a second one fails with Status.BAD_STATE.
 * {@link #cancel} and {@link #close} may be called from any thread at any time. Calls that run the
 * model are slow: avoid an app's main thread.
 */
public final class Session implements AutoCloseable {
  private static final class SessionHandle extends Handle {
    private final List<Handle> used;
    private final long model; // of the first in `used`

    SessionHandle(List<Handle> used, long model, long pointer) {
      super("session", false, pointer);
      this.used = used;
      this.model = model;
    }

    @Override
    void destroy(long pointer) {
      Native.destroySession(pointer);
      for (Handle each : used) {
        each.release();
      }
    }

    @Override
    void interrupt(long pointer) {
      Native.cancel(pointer);
    }
  }

  private final SessionHandle handle;
  private final Model model;
  private final List<Adapter> adapters;
  private final int vocab;
  private volatile Thread caller; // thread that is in a call
  volatile PrefillListener prefillListener;

  Session(Model model, SessionOptions options, List<Adapter> adapters) {
    this.model = model;
    this.adapters = new ArrayList<>(adapters);
    vocab = model.info().vocab;
    List<Handle> used = new ArrayList<>(); // held until the session is destroyed
    long parent = 0;
    long pointer = 0;
    try {
      parent = model.handle.acquire();
      used.add(model.handle);
      long[] pointers = new long[this.adapters.size()];
      for (int i = 0; i < pointers.length; ++i) {
        Handle each = this.adapters.get(i).handle;
        pointers[i] = each.acquire();
        used.add(each);
      }
      pointer = Native.createSession(parent, options, Native.utf8(deviceFolder()), pointers);
    } finally {
      if (pointer == 0) {
        for (Handle each : used) {
          each.release();
        }
      }
    }
    handle = new SessionHandle(used, parent, pointer);
  }

  /**
   * Makes the sequence, which must be empty, use these of the session's adapters, all of them added
   * up. None: the model as it is.
   *
   * @param scales multiply the adapters, one each
   */
  public void setAdapters(List<Adapter> chosen, float[] scales) {
    if (scales.length != chosen.size()) {
      throw new IllegalArgumentException(
          chosen.size() + " adapters and " + scales.length + " scales");
    }
    int[] indices = new int[chosen.size()];
    for (int i = 0; i < indices.length; ++i) {
      indices[i] = adapters.indexOf(chosen.get(i));
      if (indices[i] < 0) {
        throw new IllegalArgumentException("the session was created without this adapter");
      }
    }
    run(session -> Native.setAdapters(session, indices, scales));
  }

  /**
   * Returns the default of {@link SessionOptions#deviceFolder}: an Android app's cache folder. Null
   * elsewhere, because other users could write to a shared folder. "" in the options: none.
   */
  public static String deviceFolder() {
    boolean isAndroid = "The Android Project".equals(System.getProperty("java.vendor"));
    return isAndroid ? System.getProperty("java.io.tmpdir") : null;
  }

  /** Cancels a running call and destroys the session. Frees its memory. */
  @Override
  public void close() {
    handle.close(caller);
  }

  /**
   * Cancels the call running on another thread, within one layer's time: it throws an exception
   * with Status.CANCELLED, and generation may resume from there. If no call is running, cancels the
   * next call that runs the model.
   */
  public void cancel() {
    handle.signal(Native::cancel);
  }

  /**
   * Clears a pending {@link #cancel}. Call it before handing new work to the worker thread.
   * Callable from any thread.
   */
  public void clearCancel() {
    handle.signal(Native::clearCancel);
  }

  /** Returns a random seed for {@link Sampling}. */
  public static long randomSeed() {
    return Native.randomSeed();
  }

  <T> T get(LongFunction<T> call) {
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

  /** Tokenizes the text as the start of a sequence and {@link #prefill}s it. */
  public void prefill(String text) {
    prefill(model.tokenize(text));
  }

  /**
   * Same, with images where the text has the model's markers (ImageInfo.marker), in their order.
   */
  public void prefill(String text, List<Image> images) {
    String prompt = images.isEmpty() ? text : ImageEncoder.expand(model, text, images);
    prefill(model.tokenize(prompt), images);
  }

  /**
   * Sets the sampling for all following tokens. A new session is greedy; see
   * {@link Model#sampling}.
   */
  public void setSampling(Sampling sampling) {
    run(session -> Native.setSampling(session, sampling));
  }

  /**
   * Compiles a constraint for the text that follows, in the session's constraintBytes: JSON of a
   * schema without white space and with properties in its order, a match of a regular expression, a
   * text of a grammar, or one of some choices ({@link ConstraintKind}).
   */
  public void setConstraint(ConstraintKind kind, String text) {
    setConstraint(kind, text, false, false, false, -1);
  }

  /** Same. first: position of the text's first token if it has begun already, else -1. */
  public void setConstraint(
      ConstraintKind kind,
      String text,
      boolean anyOrder,
      boolean anyWhitespace,
      boolean chooseForced,
      int first) {
    byte[] utf8 = Native.utf8(text);
    run(
        session ->
            Native.setConstraint(
                session, kind.number, utf8, anyOrder, anyWhitespace, chooseForced, first));
  }

  /** Removes the sequence's constraint, if it has one. */
  public void dropConstraint() {
    run(session -> Native.setConstraint(session, 0, null, false, false, false, -1));
  }

  /** Returns what the sequence's constraint cost so far. */
  public ConstraintStats constraintStats() {
    ConstraintStats stats = new ConstraintStats();
    run(session -> Native.constraintStats(session, stats));
    return stats;
  }

  /** Generates text after the prefilled tokens and streams it to the listener. */
  public GenerateResult generate(GenerateOptions options, TextListener listener) {
    return generatePieces(
        options, (token, utf8) -> utf8.length == 0 || listener.onText(Native.text(utf8)));
  }

  /** Same, with tokens and bytes. */
  public GenerateResult generatePieces(GenerateOptions options, PieceListener listener) {
    byte[][] stops = options.stopBytes();
    GenerateResult result = new GenerateResult();
    int nTop = options.beginLogprobs();
    try {
      run(
          session ->
              Native.generate(
                  session,
                  options.maxTokens,
                  options.ignoreEos,
                  stops,
                  options.extraEosIds,
                  nTop,
                  options.logprobIds(),
                  options.logprobValues(),
                  listener,
                  result));
    } finally {
      options.endLogprobs(result.nLogprobs);
    }
    return result;
  }

  // ---- tokens

  /** Appends tokens to the sequence and runs them. */
  public void prefill(int[] ids) {
    run(session -> Native.prefill(session, ids, prefillListener));
  }

  /**
   * Makes the sequence hold exactly these tokens, reusing the common prefix: for conversations.
   * Returns the number of reused tokens.
   */
  public int follow(int[] ids) {
    return get(session -> Native.follow(session, ids, prefillListener));
  }

  /**
   * Same as {@link #prefill(int[])}, for tokens of which some are embeddings of the images, in
   * their order: the model's image token ({@link Chat#tokenize}), or an id below 0. Needs
   * embeddingRows in the session's options.
   */
  public void prefill(int[] ids, List<Image> images) {
    if (images.isEmpty()) {
      prefill(ids);
      return;
    }
    float[][] rows = Image.embeddings(images);
    run(session -> Native.prefillImages(handle.model, session, ids, rows, prefillListener));
  }

  /**
   * Same as {@link #follow(int[])}, for such tokens; equal embeddings of the sequence are kept.
   */
  public int follow(int[] ids, List<Image> images) {
    if (images.isEmpty()) {
      return follow(ids);
    }
    float[][] rows = Image.embeddings(images);
    return get(
        session -> Native.followImages(handle.model, session, ids, rows, prefillListener));
  }

  /**
   * Reports the progress of later calls of {@link #prefill}, {@link #follow} and
   * {@link Conversation#reply}. Null: to nobody.
   */
  public void setPrefillListener(PrefillListener listener) {
    prefillListener = listener;
  }

  /** Creates a conversation over this session, which must not be closed before it. */
  public Conversation conversation() {
    return conversation(new ConversationOptions());
  }

  /** Same, with options. */
  public Conversation conversation(ConversationOptions options) {
    return new Conversation(this, options);
  }

  /** Starts the sequence with the bundle's precomputed prompt prefix. */
  public void usePrefix() {
    run(Native::usePrefix);
  }

  /** Encodes the sequence's encoder input, for models with a token encoder. */
  public void encode(int[] ids) {
    run(session -> Native.encodeIds(session, ids));
  }

  /** Encodes features: frames of width numbers each, frame by frame. */
  public void encode(float[] features, int frames, int width) {
    run(session -> Native.encodeFeatures(session, features, frames, width));
  }

  /**
   * Chooses the next token, appends it and runs it. With a full context, returns a last token
   * without appending it.
   */
  public int decode() {
    return get(Native::decode);
  }

  /** Chooses the next token without running the model. */
  public int sample() {
    return get(Native::sample);
  }

  /**
   * Returns log-probabilities of the next token in the model's own distribution, before the
   * sampling changes it: first that of {@code id}, then the {@code nTop} most likely ones.
   */
  public TokenLogprob[] logprobs(int id, int nTop) {
    int[] ids = new int[nTop];
    float[] values = get(session -> Native.logprobs(session, id, ids));
    TokenLogprob[] result = new TokenLogprob[nTop + 1];
    result[0] = new TokenLogprob(id, values[0]);
    for (int i = 0; i < nTop; ++i) result[i + 1] = new TokenLogprob(ids[i], values[i + 1]);
    return result;
  }

  /** Returns a copy of the logits after the last token, [vocab]. */
  public float[] logits() {
    return get(session -> Native.logits(session, vocab));
  }

  /**
   * Same as {@link #prefill}, for at most one chunk; returns the logits after each token, one row
   * each. Requires allLogits.
   */
  public float[] prefillLogits(int[] ids) {
    return get(session -> Native.prefillLogits(session, ids, vocab));
  }

  /** Returns the tokens of the sequence. */
  public int[] tokens() {
    return get(Native::tokens);
  }

  /** Returns the number of tokens of the sequence. */
  public int length() {
    return get(Native::length);
  }

  /** Clears the sequence. */
  public void reset() {
    run(Native::reset);
  }

  /** Removes the tokens from position on; generation continues from there. */
  public void rewind(int position) {
    run(session -> Native.rewind(session, position));
  }

  /** Returns the first position that {@link #rewind} accepts. */
  public int firstRewindPosition() {
    return get(Native::firstRewindPosition);
  }

  /**
   * Returns where {@link #rewind} would continue from: the tokens from there to position run again,
   * which only happens in models with recurrent states.
   */
  public int resumePosition(int position) {
    return get(session -> Native.resumePosition(session, position));
  }

  /**
   * Keeps a snapshot of the recurrent states here, so that rewinding to this position computes
   * nothing again. Needs stateSnapshots in the session's options.
   */
  public void mark() {
    run(Native::mark);
  }

  /** Returns the memory of unused KV pages to the system; returns the number of bytes. */
  public long trim() {
    return get(Native::trim);
  }

  // ---- several sequences

  /** Selects the sequence for all following calls. */
  public void select(int sequence) {
    run(session -> Native.select(session, sequence));
  }

  /** Returns the selected sequence. */
  public int selected() {
    return get(Native::selected);
  }

  /**
   * Makes the empty sequence to a copy of from that shares its pages. The copy draws its own random
   * numbers.
   */
  public void fork(int from, int to) {
    run(session -> Native.fork(session, from, to));
  }

  /** Appends ids[i] to sequences[i], all in one batch. */
  public void step(int[] sequences, int[] ids) {
    run(session -> Native.step(session, sequences, ids));
  }

  /** Chooses, appends and runs a token for each of these sequences, all in one batch. */
  public int[] decodeBatch(int[] sequences) {
    return get(session -> Native.decodeBatch(session, sequences));
  }

  /** Runs beam search from the selected sequence; clears all sequences that take part. */
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

  /** Saves all sequences to a file; replaces it only once the new one is complete. */
  public void save(String path) {
    run(session -> Native.save(session, Native.utf8(path)));
  }

  /** Saves all sequences to memory. */
  public byte[] saveBytes() {
    return get(Native::saveBytes);
  }

  /** Replaces all sequences by saved ones; a file that does not match changes nothing. */
  public void restore(String path, Verify verify) {
    restore(path, verify, true);
  }

  /** Same; constraints false: saved constraints are left out. */
  public void restore(String path, Verify verify, boolean constraints) {
    run(session -> Native.restore(session, Native.utf8(path), verify.number, constraints));
  }

  /** Same, from the result of {@link #saveBytes}. */
  public void restoreBytes(byte[] data, Verify verify) {
    restoreBytes(data, verify, true);
  }

  /** Same; constraints false: saved constraints are left out. */
  public void restoreBytes(byte[] data, Verify verify, boolean constraints) {
    run(session -> Native.restoreBytes(session, data, verify.number, constraints));
  }

  // ---- KV cache

  /** Returns the KV shape of a layer, and the positions that {@link #keys} can read. */
  public KvLayer kvLayer(int layer) {
    KvLayer info = new KvLayer();
    run(session -> Native.kvLayer(session, layer, info));
    return info;
  }

  /**
   * Returns a layer's keys of n tokens from position first on, [nKvHeads, n, headDim], rotated by
   * RoPE.
   */
  public float[] keys(int layer, int first, int n) {
    return get(session -> Native.readKv(session, layer, first, n, true));
  }

  /** Same for values. */
  public float[] values(int layer, int first, int n) {
    return get(session -> Native.readKv(session, layer, first, n, false));
  }

  // ---- backend and counters

  /** Returns the backend in use and, after a fallback, why the requested device is not used. */
  public BackendInfo backend() {
    BackendInfo info = new BackendInfo();
    run(session -> Native.backend(session, info));
    return info;
  }

  /** Returns the CPUs chosen for the session's threads, and those that the system allows. */
  public SessionCpus cpus() {
    SessionCpus cpus = new SessionCpus();
    run(session -> Native.cpus(session, cpus));
    return cpus;
  }

  /** Reads the thermal zones; empty unless the session was created with sensors. */
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

  /** Returns counters since creation or {@link #resetStats}. */
  public Stats stats() {
    Stats stats = new Stats();
    run(session -> Native.stats(session, stats));
    return stats;
  }

  /** Resets the token and time counters. */
  public void resetStats() {
    run(Native::resetStats);
  }
}
