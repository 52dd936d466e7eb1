package org.arenite;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.LongFunction;

/**
 * Makes embeddings of images with the vision tower of a model. Close it once the images are
 * encoded: its memory is that of the tower, and sessions keep copies of the embeddings.
 *
 * <p>Allows one call at a time, from any thread; a second one fails with Status.BAD_STATE.
 * {@link #cancel} and {@link #close} may be called from any thread at any time. Several encoders
 * may share a model.
 */
public final class ImageEncoder implements AutoCloseable {
  private static final int CHANNELS = 3;

  private static final class EncoderHandle extends Handle {
    private final Handle model;

    EncoderHandle(Handle model, long pointer) {
      super("image encoder", false, pointer);
      this.model = model;
    }

    @Override
    void destroy(long pointer) {
      Native.destroyImageEncoder(pointer);
      model.release();
    }

    @Override
    void interrupt(long pointer) {
      Native.cancelImageEncoder(pointer);
    }
  }

  private final EncoderHandle handle;
  private final long model; // which the handle holds
  private final ImagePlan plan;

  ImageEncoder(Model model, ImageOptions options) {
    plan = plan(model, options);
    this.model = model.handle.acquire();
    long pointer = 0;
    try {
      pointer = Native.createImageEncoder(this.model, options);
    } finally {
      if (pointer == 0) {
        model.handle.release();
      }
    }
    handle = new EncoderHandle(model.handle, pointer);
  }

  /** Describes how the model takes images; throws Status.UNSUPPORTED if it takes none. */
  public static ImageInfo info(Model model) {
    ImageInfo info = new ImageInfo();
    model.run(pointer -> Native.imageInfo(pointer, info));
    return info;
  }

  /** Returns the layout of an image of width x height pixels. */
  public static ImageLayout layout(Model model, int width, int height) {
    ImageLayout layout = new ImageLayout();
    model.run(pointer -> Native.imageLayout(pointer, width, height, layout));
    return layout;
  }

  /**
   * Replaces the markers of a prompt (ImageInfo.marker) by the texts of the images, in their order.
   * For prompts of the app's own: {@link Chat#tokenize} does so for the template's markers alone.
   */
  public static String expand(Model model, String prompt, List<Image> images) {
    return model.get(
        pointer ->
            Native.text(
                Native.expandImages(pointer, Image.sizes(images), Native.utf8(prompt))));
  }

  /** Returns the memory of an encoder with these options; allocates nothing. */
  public static ImagePlan plan(Model model, ImageOptions options) {
    ImagePlan plan = new ImagePlan();
    model.run(pointer -> Native.imagePlan(pointer, options, plan));
    return plan;
  }

  /** Returns the memory of this encoder, and its options after defaults are applied. */
  public ImagePlan plan() {
    return plan;
  }

  /** Returns the backend in use and, after a fallback, why the requested device is not used. */
  public BackendInfo backend() {
    BackendInfo info = new BackendInfo();
    return get(
        pointer -> {
          Native.imageBackend(pointer, info);
          return info;
        });
  }

  /** Ends a call of another thread and destroys the encoder. Frees its memory. */
  @Override
  public void close() {
    handle.close(null);
  }

  /**
   * Ends the call running on another thread, or the next one, within one step of the model: it
   * throws an exception with Status.CANCELLED.
   */
  public void cancel() {
    handle.signal(Native::cancelImageEncoder);
  }

  /** Encodes an image of interleaved red, green and blue bytes, row by row. */
  public Image encode(byte[] rgb, int width, int height) {
    return encode(rgb, width, height, 0);
  }

  /**
   * Same.
   *
   * @param stride bytes from a row of pixels to the next; 0: 3 * width
   */
  public Image encode(byte[] rgb, int width, int height, int stride) {
    checkRoom(width, height, CHANNELS, stride, rgb.length);
    return image(
        width, height, pointer -> Native.encodeRgb(model, pointer, rgb, width, height, stride));
  }

  /**
   * Same, for the bytes of a direct buffer from its position on, which are not copied.
   *
   * @param stride bytes from a row of pixels to the next; 0: 3 * width
   */
  public Image encode(ByteBuffer rgb, int width, int height, int stride) {
    if (!rgb.isDirect()) {
      throw new IllegalArgumentException("the buffer is not direct");
    }
    checkRoom(width, height, CHANNELS, stride, rgb.remaining());
    int position = rgb.position();
    return image(
        width,
        height,
        pointer ->
            Native.encodeBuffer(model, pointer, rgb, position, width, height, stride));
  }

  /**
   * Same, for colours as Android's {@code Bitmap.getPixels} and {@code BufferedImage.getRGB} give
   * them: 0xAARRGGBB, row by row, without gaps. Alpha is ignored.
   */
  public Image encode(int[] argb, int width, int height) {
    checkRoom(width, height, 1, 0, argb.length);
    return image(
        width, height, pointer -> Native.encodeArgb(model, pointer, argb, width, height));
  }

  /** Returns what the last call of {@link #encode} did. */
  public ImageCounts counts() {
    ImageCounts counts = new ImageCounts();
    return get(
        pointer -> {
          Native.imageCounts(pointer, counts);
          return counts;
        });
  }

  private <T> T get(LongFunction<T> call) {
    long pointer = handle.acquire();
    try {
      return call.apply(pointer);
    } finally {
      handle.release();
    }
  }

  private Image image(int width, int height, LongFunction<float[]> call) {
    return new Image(width, height, get(call));
  }

  /** Checks that pixels of some elements each, in rows of `stride` elements, are all there. */
  private static void checkRoom(int width, int height, int elements, int stride, int there) {
    long row = stride == 0 ? (long) elements * width : stride;
    if (width < 1 || height < 1 || stride < 0
        || there < (height - 1) * row + (long) elements * width) {
      throw new IllegalArgumentException(
          width + " x " + height + " pixels with rows of " + row + " do not fit " + there);
    }
  }
}
