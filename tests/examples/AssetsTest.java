package org.arenite.example;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;

/** The app's model is copied once for each version of the app, and replaced after an update. */
final class AssetsTest {
  private AssetsTest() {}

  private static InputStream stream(String text) {
    return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
  }

  private static void equal(Object expected, Object seen) {
    if (!expected.equals(seen)) {
      throw new AssertionError("expected " + expected + ", not " + seen);
    }
  }

  private static String copy(File folder, long version, InputStream source) throws IOException {
    File file = Assets.copy(folder, "story.arn", version, source);
    return new String(Files.readAllBytes(file.toPath()), StandardCharsets.UTF_8);
  }

  public static void main(String[] arguments) throws IOException {
    File folder = Files.createTempDirectory("arenite").toFile();
    Files.write(new File(folder, "other.txt").toPath(), new byte[1]);
    equal("first", copy(folder, 1, stream("first")));
    equal("first", copy(folder, 1, stream("not read")));
    equal("second", copy(folder, 2, stream("second"))); // the app was updated
    InputStream broken =
        new InputStream() {
          @Override
          public int read() throws IOException {
            throw new IOException("the package is damaged");
          }
        };
    try {
      copy(folder, 3, broken);
      throw new AssertionError("nothing was thrown");
    } catch (IOException e) {
      equal("the package is damaged", e.getMessage());
    }
    equal("second", copy(folder, 2, stream("not read"))); // still there
    equal("third", copy(folder, 3, stream("third")));
    String[] left = folder.list();
    java.util.Arrays.sort(left);
    equal("[3-story.arn, other.txt]", java.util.Arrays.toString(left));
    for (File file : folder.listFiles()) {
      Files.delete(file.toPath());
    }
    Files.delete(folder.toPath());
    System.out.println("1 passed, 0 failed");
  }
}
