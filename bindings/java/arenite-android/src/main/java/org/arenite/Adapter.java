package org.arenite;

/**
 * An open adapter of a model (LoRA), which sessions add while they run. Thread-safe. Closing one
 * that sessions use takes effect when the last of these is closed.
 */
public final class Adapter implements AutoCloseable {
  private static final class AdapterHandle extends Handle {
    private final Handle model;

    AdapterHandle(Handle model, long pointer) {
      super("adapter", true, pointer);
      this.model = model;
    }

    @Override
    void destroy(long pointer) {
      Native.closeAdapter(pointer);
      model.release();
    }
  }

  final Handle handle;

  private Adapter(Model model, String path, byte[] publicKey) {
    long parent = model.handle.acquire();
    long pointer = 0;
    try {
      pointer = Native.openAdapter(parent, Native.utf8(path), publicKey);
    } finally {
      if (pointer == 0) {
        model.handle.release();
      }
    }
    handle = new AdapterHandle(model.handle, pointer);
  }

  /** Maps the adapter at path, which must have been made for the model's bundle. */
  public static Adapter open(Model model, String path) {
    return open(model, path, null);
  }

  /**
   * Maps the adapter at path, with a check.
   *
   * @param publicKey 32 bytes of the key that must have signed it; null: no signature needed
   */
  public static Adapter open(Model model, String path, byte[] publicKey) {
    return new Adapter(model, path, publicKey);
  }

  /** Closes the adapter; sessions made with it keep it until they are closed. */
  @Override
  public void close() {
    handle.close(null);
  }
}
