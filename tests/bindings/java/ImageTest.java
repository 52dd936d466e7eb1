import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.arenite.Backend;
import org.arenite.Chat;
import org.arenite.Image;
import org.arenite.ImageEncoder;
import org.arenite.ImageInfo;
import org.arenite.ImageLayout;
import org.arenite.ImageOptions;
import org.arenite.KvType;
import org.arenite.Messages;
import org.arenite.Model;
import org.arenite.Session;
import org.arenite.SessionOptions;
import org.arenite.Status;

/**
 * Tests images against goldens of transformers. Arguments: a bundle with a vision tower, and its
 * goldens: lines of sizes, of a prompt's ids, of greedy ids, and of every fifth float of each
 * embedding; a bundle without a tower.
 */
final class ImageTest {
  private static final int STEP = 5; // of the goldens' floats
  private static final double TOLERANCE = 3e-4;

  private final String[] files;
  private final Model model;
  private final int[] sizes;
  private final int[] prompt;
  private final int[] greedy;
  private final List<String> embeddings;

  ImageTest(String[] arguments) throws Exception {
    files = arguments;
    model = Model.open(files[0]);
    List<String> lines = Files.readAllLines(Paths.get(files[1]));
    sizes = Tests.ids(lines.get(0));
    prompt = Tests.ids(lines.get(1));
    greedy = Tests.ids(lines.get(2));
    embeddings = lines.subList(3, lines.size());
  }

  public static void main(String[] arguments) throws Exception {
    ImageTest test = new ImageTest(arguments);
    Tests.run(test);
    test.model.close();
  }

  /** The formula of tests/golden/vision_case.h. */
  private static byte[] pixels(int width, int height, int index) {
    byte[] rgb = new byte[3 * width * height];
    int at = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < 3; ++c) {
          rgb[at++] = (byte) (x * (3 + c) + y * (5 - c) + ((x * y) >> 3) * (index + 1));
        }
      }
    }
    return rgb;
  }

  private List<Image> encode() {
    List<Image> images = new ArrayList<>();
    try (ImageEncoder encoder = model.imageEncoder()) {
      for (int i = 0; i < sizes.length / 2; ++i) {
        int width = sizes[2 * i];
        int height = sizes[2 * i + 1];
        images.add(encoder.encode(pixels(width, height, i), width, height));
        Tests.check(encoder.counts().nEmbeddings > 0, "it counts");
      }
    }
    return images;
  }

  private int count(int[] ids, int id) {
    return (int) Arrays.stream(ids).filter(each -> each == id).count();
  }

  private int imageToken() {
    return ImageEncoder.info(model).tokenId;
  }

  private Session session() {
    SessionOptions options = new SessionOptions();
    options.kvType = KvType.F32;
    options.embeddingRows = 2 * embeddings.size();
    return model.session(options);
  }

  void testEmbeddingsAndTokensAreTheGoldens() {
    ImageInfo info = ImageEncoder.info(model);
    Tests.equal("<image>", info.marker);
    List<Image> images = encode();
    int row = 0;
    for (Image image : images) {
      ImageLayout layout = ImageEncoder.layout(model, image.width, image.height);
      Tests.equal(layout.nEmbeddings * info.width, image.embeddings.length);
      for (int i = 0; i < layout.nEmbeddings; ++i) {
        float[] found =
            Arrays.copyOfRange(image.embeddings, i * info.width, (i + 1) * info.width);
        Tests.near(Tests.floats(embeddings.get(row++)), found, STEP, TOLERANCE);
      }
    }
    Tests.equal(embeddings.size(), row);
    try (Session session = session()) {
      long[] last = {0, 0};
      session.setPrefillListener(
          (done, total) -> {
            last[0] = done;
            last[1] = total;
            return true;
          });
      session.prefill(prompt, images);
      Tests.equal((long) prompt.length, last[0]);
      Tests.equal((long) prompt.length, last[1]);
      int[] found = new int[greedy.length];
      for (int i = 0; i < found.length; ++i) {
        found[i] = session.decode();
      }
      Tests.equal(greedy, found);
    }
  }

  void testPixelsOfAnyKindGiveTheSame() throws Exception {
    int width = sizes[0];
    int height = sizes[1];
    int row = 3 * width + 7;
    byte[] rgb = pixels(width, height, 0);
    byte[] wide = new byte[row * height];
    int[] argb = new int[width * height];
    ByteBuffer direct = ByteBuffer.allocateDirect(5 + row * height);
    for (int y = 0; y < height; ++y) {
      System.arraycopy(rgb, 3 * width * y, wide, row * y, 3 * width);
      for (int x = 0; x < width; ++x) {
        int at = 3 * (width * y + x);
        argb[width * y + x] =
            (x << 24) | (rgb[at] & 255) << 16 | (rgb[at + 1] & 255) << 8 | (rgb[at + 2] & 255);
      }
    }
    direct.position(5);
    direct.put(wide);
    direct.position(5);
    try (ImageEncoder encoder = model.imageEncoder()) {
      float[] expected = encoder.encode(rgb, width, height).embeddings;
      List<Image> others =
          Arrays.asList(
              encoder.encode(wide, width, height, row),
              encoder.encode(direct, width, height, row),
              encoder.encode(argb, width, height));
      for (Image other : others) {
        Tests.check(Arrays.equals(expected, other.embeddings), "the same embeddings");
      }
      Tests.equal(5, direct.position());
      Tests.refuses("do not fit 5", () -> encoder.encode(new byte[5], 2, 1));
      Tests.refuses("do not fit 5", () -> encoder.encode(new int[5], 2, 3));
      Tests.refuses("do not fit", () -> encoder.encode(rgb, -1, 1));
      direct.position(6);
      Tests.refuses("do not fit", () -> encoder.encode(direct, width, height + 1, row));
      Tests.refuses("not direct", () -> encoder.encode(ByteBuffer.wrap(rgb), width, height, 0));
      Tests.fails(Status.BAD_ARGUMENT, "stride", () -> encoder.encode(rgb, width, 1, 2 * width));
    }
  }

  void testFollowKeepsEqualImages() {
    List<Image> images = encode();
    int[] longer = Arrays.copyOf(prompt, prompt.length + 2);
    try (Session session = session()) {
      Tests.equal(0, session.follow(prompt, images));
      Tests.equal(prompt.length, session.follow(longer, images));
      int first = 0;
      while (prompt[first] != imageToken()) {
        ++first;
      }
      Tests.equal(first, session.follow(prompt, Arrays.asList(images.get(1), images.get(0))));
    }
  }

  void testOnlyMarkersOfTheTemplateAreExpanded() throws Exception {
    List<Image> images = encode();
    Messages messages = new Messages().add("user", "What is an <image>?", 2);
    try (Chat chat = model.chat();
        Session session = session()) {
      int[] ids = chat.tokenize(messages, images);
      Tests.equal(embeddings.size(), count(ids, imageToken()));
      session.follow(ids, images);
      Tests.equal(ids.length, session.length());
      Tests.fails(
          Status.BAD_ARGUMENT, "marker", () -> chat.tokenize(messages, images.subList(0, 1)));
      session.reset();
      session.prefill("a <image> b <image>", images);
      Tests.equal(
          embeddings.size(), (int) Arrays.stream(session.tokens()).filter(t -> t < 0).count());
      session.follow(new int[] {5, 6}, Collections.<Image>emptyList());
      Tests.equal(2, session.length());
    }
  }

  void testStoredEmbeddingsAreImagesAgain() throws Exception {
    List<Image> images = new ArrayList<>();
    for (Image image : encode()) {
      images.add(new Image(image.width, image.height, image.embeddings.clone()));
    }
    try (Session session = session()) {
      session.prefill(prompt, images);
      Tests.equal(greedy[0], session.decode());
      Image broken = new Image(1, 1, new float[3]);
      Tests.fails(
          Status.BAD_ARGUMENT,
          "not whole rows",
          () -> session.prefill(prompt, Collections.singletonList(broken)));
      Tests.fails(
          Status.BAD_ARGUMENT, "", () -> session.prefill(prompt, images.subList(0, 1)));
    }
  }

  void testRefusalsNameTheReason() throws Exception {
    List<Image> images = encode();
    ImageOptions options = new ImageOptions();
    options.maxSide = 64;
    options.nThreads = 1;
    ImageEncoder encoder = model.imageEncoder(options);
    Tests.equal(64, encoder.plan().maxSide);
    Tests.equal("cpu", encoder.backend().name);
    Tests.equal(0L, encoder.plan().deviceBytes);
    options.backend = Backend.AUTO;
    options.device = "no such device";
    try (ImageEncoder other = model.imageEncoder(options)) {
      Tests.equal("cpu", other.backend().name);
      Tests.check(!other.backend().reason.isEmpty(), "the reason is there");
    }
    options.backend = Backend.CPU;
    Tests.equal(ImageEncoder.plan(model, options).totalBytes, encoder.plan().totalBytes);
    Tests.fails(Status.BAD_ARGUMENT, "65", () -> encoder.encode(new byte[65 * 3], 65, 1));
    encoder.cancel();
    byte[] rgb = pixels(48, 32, 0);
    Tests.fails(Status.CANCELLED, "", () -> encoder.encode(rgb, 48, 32));
    encoder.encode(rgb, 48, 32);
    encoder.close();
    Tests.fails(Status.BAD_STATE, "closed", () -> encoder.encode(rgb, 48, 32));
    try (Session session = model.session()) {
      Tests.fails(
          Status.BAD_STATE, "embedding_rows", () -> session.prefill(prompt, images));
    }
    try (Model blind = Model.open(files[2])) {
      Tests.fails(Status.UNSUPPORTED, "", () -> ImageEncoder.info(blind));
      Tests.fails(Status.UNSUPPORTED, "", () -> blind.imageEncoder());
    }
  }

  void testModelClosedBeforeItsUsers() {
    Model closed = Model.open(files[0]);
    SessionOptions options = new SessionOptions();
    options.embeddingRows = embeddings.size();
    try (ImageEncoder encoder = closed.imageEncoder();
        Session session = closed.session(options)) {
      closed.close();
      Image image = encoder.encode(pixels(sizes[0], sizes[1], 0), sizes[0], sizes[1]);
      int[] ids = new int[image.embeddings.length / ImageEncoder.info(model).width];
      Arrays.fill(ids, imageToken());
      session.prefill(ids, Collections.singletonList(image));
      Tests.equal(ids.length, session.length());
    }
  }
}
