package org.arenite;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;

/**
 * An open bundle. Thread-safe; sessions may share it. Closing a model that sessions, chats,
 * embedders or image encoders use takes effect when the last of these is closed.
 */
public final class Model implements AutoCloseable {
  static final class ModelHandle extends Handle {
    ModelHandle(long pointer) {
      super("model", true, pointer);
    }

    @Override
    void destroy(long pointer) {
      Native.closeModel(pointer);
    }
  }

  final ModelHandle handle;

  private Model(long pointer) {
    handle = new ModelHandle(pointer);
  }

  /** Maps the bundle at path. */
  public static Model open(String path) {
    return open(path, Hashes.INDEX, null);
  }

  /**
   * Maps the bundle at path, with checks.
   *
   * @param verifyHashes the hashes to check: see {@link Hashes}
   * @param publicKey 32 bytes of the key that must have signed the bundle; null: no signature
   * needed
   */
  public static Model open(String path, Hashes verifyHashes, byte[] publicKey) {
    return open(path, verifyHashes, publicKey, Residency.MAPPED);
  }

  /**
   * Maps or loads the bundle at path, with checks.
   *
   * @param residency where the bytes lie: mapped, copied, locked or in huge pages
   */
  public static Model open(
      String path, Hashes verifyHashes, byte[] publicKey, Residency residency) {
    return new Model(
        Native.openPath(
            Native.utf8(path), verifyHashes.number, publicKey, residency.number));
  }

  /**
   * Maps a part of an open file, such as the range of an AssetFileDescriptor in an APK. The
   * descriptor may be closed afterwards.
   *
   * @param offset start of the bundle, a multiple of 16384
   * @param length its bytes; 0: to the end of the file
   */
  public static Model open(
      int fd, long offset, long length, Hashes verifyHashes, byte[] publicKey) {
    return open(fd, offset, length, verifyHashes, publicKey, Residency.MAPPED);
  }

  /** Same, with a {@link Residency}. */
  public static Model open(
      int fd,
      long offset,
      long length,
      Hashes verifyHashes,
      byte[] publicKey,
      Residency residency) {
    return new Model(
        Native.openFd(
            fd, offset, length, verifyHashes.number, publicKey, residency.number));
  }

  /**
   * Reads a bundle of length bytes into memory through a function, for example one that decrypts
   * it. Exceptions of the reader, checked ones too, propagate to the caller unchanged.
   */
  public static Model open(
      BundleReader reader, long length, Hashes verifyHashes, byte[] publicKey)
      throws java.io.IOException {
    return new Model(Native.openReader(reader, length, verifyHashes.number, publicKey));
  }

  /** Returns the version of the library: major * 65536 + minor * 256 + patch. */
  public static int libraryVersion() {
    return Native.version();
  }

  @Override
  public void close() {
    handle.close(null);
  }

  <T> T get(LongFunction<T> call) {
    long model = handle.acquire();
    try {
      return call.apply(model);
    } finally {
      handle.release();
    }
  }

  void run(LongConsumer call) {
    get(
        model -> {
          call.accept(model);
          return null;
        });
  }

  /** Returns a description of the bundle. */
  public ModelInfo info() {
    ModelInfo info = new ModelInfo();
    run(model -> Native.modelInfo(model, info));
    return info;
  }

  /**
   * Returns how much of the bundle is in memory. Counts the pages of the process: takes
   * milliseconds.
   */
  public ResidencyInfo residency() {
    ResidencyInfo residency = new ResidencyInfo();
    run(model -> Native.modelResidency(model, residency));
    return residency;
  }

  /** Returns the checkpoint's own sampling settings. */
  public Sampling sampling() {
    Sampling sampling = new Sampling();
    run(model -> Native.modelSampling(model, sampling));
    return sampling;
  }

  /** Returns the tokens of the bundle's precomputed prompt prefix; empty if none. */
  public int[] prefix() {
    return get(Native::modelPrefix);
  }

  /** Returns token ids of a text that starts a sequence: adds BOS etc. if the model has them. */
  public int[] tokenize(String text) {
    return tokenize(text, true);
  }

  /** Returns token ids of a text; without special, adds no BOS etc. (as after a chat template). */
  public int[] tokenize(String text, boolean special) {
    return tokenize(text, special, false);
  }

  /**
   * Returns token ids of a text.
   *
   * @param special true: adds BOS etc. around the text
   * @param plain true: treats special tokens written in the text as plain text, for user input
   */
  public int[] tokenize(String text, boolean special, boolean plain) {
    return get(model -> Native.tokenize(model, Native.utf8(text), special, plain));
  }

  /** Returns the text of tokens; invalid UTF-8 becomes U+FFFD. */
  public String detokenize(int[] ids, boolean skipSpecial) {
    return get(model -> Native.text(Native.detokenize(model, ids, skipSpecial)));
  }

  /** Returns a streaming detokenizer for one sequence. */
  public Detokenizer detokenizer(boolean skipSpecial) {
    return new Detokenizer(this, skipSpecial, null);
  }

  /** Returns the stored bytes of one token: not always complete UTF-8. */
  public byte[] tokenText(int id) {
    return get(model -> Native.tokenText(model, id));
  }

  /** Returns the memory of a session with these options; allocates nothing. */
  public MemoryPlan plan(SessionOptions options) {
    MemoryPlan plan = new MemoryPlan();
    run(model -> Native.plan(model, options, plan));
    return plan;
  }

  /** Returns the groups of layers that share a pool of KV pages. */
  public List<KvGroup> planGroups(SessionOptions options) {
    int count = plan(options).nKvGroups;
    List<KvGroup> groups = new ArrayList<>();
    long model = handle.acquire();
    try {
      for (int i = 0; i < count; ++i) {
        KvGroup group = new KvGroup();
        Native.planGroup(model, options, i, group);
        groups.add(group);
      }
    } finally {
      handle.release();
    }
    return groups;
  }

  /** Creates a session with the library's defaults. */
  public Session session() {
    return session(new SessionOptions());
  }

  /** Creates a session. */
  public Session session(SessionOptions options) {
    return session(options, Collections.<Adapter>emptyList());
  }

  /** Creates a session whose sequences may use these adapters: {@link Session#setAdapters}. */
  public Session session(SessionOptions options, List<Adapter> adapters) {
    return new Session(this, options, adapters);
  }

  /** Creates a renderer for the bundle's chat templates; throws Status.NOT_FOUND if it has none. */
  public Chat chat() {
    return new Chat(this, 0, 0);
  }

  /** Creates an embedder with the library's defaults. */
  public Embedder embedder() {
    return embedder(new EmbedOptions());
  }

  /** Creates an embedder. */
  public Embedder embedder(EmbedOptions options) {
    return new Embedder(this, options);
  }

  /** Creates an image encoder with the library's defaults. */
  public ImageEncoder imageEncoder() {
    return imageEncoder(new ImageOptions());
  }

  /** Creates an image encoder. */
  public ImageEncoder imageEncoder(ImageOptions options) {
    return new ImageEncoder(this, options);
  }

  /** Creates a transcriber over a session with the library's defaults. */
  public Transcriber transcriber() {
    return transcriber(new SessionOptions());
  }

  /** Creates a transcriber over a session with these options. */
  public Transcriber transcriber(SessionOptions options) {
    return new Transcriber(this, options);
  }
}
