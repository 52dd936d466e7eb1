package org.arenite;

import java.util.ArrayList;
import java.util.List;

/**
 * A bundle that is open. Several threads and sessions may use one. Closing a model that sessions or
 * chats use takes effect when the last of these is closed.
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
   * The same with checks.
   *
   * @param verifyHashes which hashes are checked: one of {@link Hashes}
   * @param publicKey 32 bytes, with which the bundle has to be signed; null: it need not be
   */
  public static Model open(String path, int verifyHashes, byte[] publicKey) {
    return new Model(Native.openPath(Native.utf8(path), verifyHashes, publicKey));
  }

  /**
   * Maps a part of an open file: of an APK, what an AssetFileDescriptor names. The descriptor may
   * be closed afterwards.
   *
   * @param offset where the bundle begins, a multiple of 16384
   * @param length its bytes; 0: to the end of the file
   */
  public static Model open(
      int fd, long offset, long length, int verifyHashes, byte[] publicKey) {
    return new Model(Native.openFd(fd, offset, length, verifyHashes, publicKey));
  }

  /**
   * Reads a bundle of length bytes into memory through a function that decrypts it, say. An
   * exception of the reader reaches the caller as it is, checked ones too.
   */
  public static Model open(
      BundleReader reader, long length, int verifyHashes, byte[] publicKey)
      throws java.io.IOException {
    return new Model(Native.openReader(reader, length, verifyHashes, publicKey));
  }

  /** The version of the library: major * 65536 + minor * 256 + patch. */
  public static int libraryVersion() {
    return Native.version();
  }

  @Override
  public void close() {
    handle.close(null);
  }

  /** What is in the bundle. */
  public ModelInfo info() {
    ModelInfo info = new ModelInfo();
    long model = handle.acquire();
    try {
      Native.modelInfo(model, info);
    } finally {
      handle.release();
    }
    return info;
  }

  /** How the checkpoint wants its tokens chosen. */
  public Sampling sampling() {
    Sampling sampling = new Sampling();
    long model = handle.acquire();
    try {
      Native.modelSampling(model, sampling);
    } finally {
      handle.release();
    }
    return sampling;
  }

  /** The tokens of the prompt's beginning that comes computed with the bundle; none: empty. */
  public int[] prefix() {
    long model = handle.acquire();
    try {
      return Native.modelPrefix(model);
    } finally {
      handle.release();
    }
  }

  /** Token ids of a text that begins a sequence: with BOS and the like, if the model has them. */
  public int[] tokenize(String text) {
    return tokenize(text, true);
  }

  /** Token ids of a text; without special nothing is added around it (as after a chat template). */
  public int[] tokenize(String text, boolean special) {
    long model = handle.acquire();
    try {
      return Native.tokenize(model, Native.utf8(text), special);
    } finally {
      handle.release();
    }
  }

  /** The text of tokens; bytes that are not UTF-8 become U+FFFD. */
  public String detokenize(int[] ids, boolean skipSpecial) {
    long model = handle.acquire();
    try {
      return Native.text(Native.detokenize(model, ids, skipSpecial));
    } finally {
      handle.release();
    }
  }

  /** The text of one token as it is stored: not always whole UTF-8. */
  public byte[] tokenText(int id) {
    long model = handle.acquire();
    try {
      return Native.tokenText(model, id);
    } finally {
      handle.release();
    }
  }

  /** The bytes that a session with these options takes; none is taken. */
  public MemoryPlan plan(SessionOptions options) {
    MemoryPlan plan = new MemoryPlan();
    long model = handle.acquire();
    try {
      Native.plan(model, options, plan);
    } finally {
      handle.release();
    }
    return plan;
  }

  /** The groups of layers that share a pool of KV pages. */
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

  /** A new session with the library's defaults. */
  public Session session() {
    return session(new SessionOptions());
  }

  /** A new session. */
  public Session session(SessionOptions options) {
    return new Session(this, options);
  }

  /** What renders conversations by the bundle's templates; Status.NOT_FOUND when it has none. */
  public Chat chat() {
    return new Chat(this, 0, 0);
  }
}
