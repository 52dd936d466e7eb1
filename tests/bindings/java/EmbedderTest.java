import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.arenite.EmbedInfo;
import org.arenite.EmbedOptions;
import org.arenite.EmbedPlan;
import org.arenite.Embedder;
import org.arenite.Model;
import org.arenite.Status;

/**
 * Tests vectors and scores against goldens of transformers. Arguments: a bundle that makes vectors,
 * and lines of text|vector; one that scores pairs, and the query with lines of text|score.
 */
final class EmbedderTest {
  private static final int WIDTH = 64;
  private static final double TOLERANCE = 3e-4; // largest elements: 0.4

  private final String[] files;
  private final Model model;
  private final List<String> texts = new ArrayList<>();
  private final List<float[]> vectors = new ArrayList<>();

  EmbedderTest(String[] arguments) throws Exception {
    files = arguments;
    model = Model.open(files[0]);
    for (String line : Files.readAllLines(Paths.get(files[1]), StandardCharsets.UTF_8)) {
      String[] parts = line.split("\\|", 2);
      texts.add(parts[0]);
      vectors.add(Tests.floats(parts[1]));
    }
  }

  public static void main(String[] arguments) throws Exception {
    EmbedderTest test = new EmbedderTest(arguments);
    Tests.run(test);
    test.model.close();
  }

  void testGivesTheVectorsOfTheGoldens() {
    Tests.check(model.info().makesVectors && !model.info().makesText, "what the model makes");
    EmbedInfo info = Embedder.info(model);
    Tests.equal(WIDTH, info.width);
    Tests.check(info.isNormalized && !info.hasInstruction, "of the checkpoint");
    Tests.equal("{passage=passage: , query=query: }", Embedder.prompts(model).toString());
    Tests.equal(0, info.defaultPrompt);
    try (Embedder embedder = model.embedder()) {
      float[][] found = embedder.embed(texts);
      Tests.equal(1L, embedder.counts().nCutTexts);
      Tests.equal(texts.size(), found.length);
      for (int i = 0; i < found.length; ++i) {
        Tests.near(vectors.get(i), found[i], 1, TOLERANCE);
      }
      Tests.check(
          Arrays.deepEquals(found, embedder.embed(texts, "passage: ")), "the default prompt");
      Tests.check(!Arrays.deepEquals(found, embedder.embed(texts, "")), "no prompt");
      Tests.equal(0, embedder.embed(Collections.<String>emptyList()).length);
    }
  }

  void testTokenIdsAreTexts() throws Exception {
    try (Embedder embedder = model.embedder()) {
      int[][] ids = new int[2][];
      for (int i = 0; i < ids.length; ++i) {
        ids[i] = model.tokenize("passage: " + texts.get(i));
      }
      float[][] expected = embedder.embed(texts.subList(0, 2));
      Tests.check(Arrays.deepEquals(expected, embedder.embedIds(ids, null)), "vectors of ids");
      int[] firsts = {ids[0].length, 2}; // the others of the second text have type 1
      float[][] typed = embedder.embedIds(ids, firsts);
      Tests.check(Arrays.equals(expected[0], typed[0]), "type 0 is the default");
      Tests.check(!Arrays.equals(expected[1], typed[1]), "type 1 differs");
      Tests.refuses("2 texts and 1", () -> embedder.embedIds(ids, new int[] {3}));
      Tests.fails(
          Status.BAD_TOKEN, "", () -> embedder.embedIds(new int[][] {{1, 5000}}, null));
    }
  }

  void testPlanIsKnownBefore() {
    EmbedOptions options = new EmbedOptions();
    options.width = 17;
    options.nThreads = 1;
    EmbedPlan plan = Embedder.plan(model, options);
    Tests.equal(17, plan.width);
    Tests.check(plan.totalBytes > plan.activationsBytes, "the block has regions");
    try (Embedder embedder = model.embedder(options)) {
      Tests.equal(plan.totalBytes, embedder.plan().totalBytes);
      Tests.equal(17, embedder.embed(texts)[0].length);
    }
  }

  void testGivesTheScoresOfTheGoldens() throws Exception {
    List<String> lines = Files.readAllLines(Paths.get(files[3]), StandardCharsets.UTF_8);
    List<String> documents = new ArrayList<>();
    float[] expected = new float[lines.size() - 1];
    for (int i = 0; i < expected.length; ++i) {
      String[] parts = lines.get(i + 1).split("\\|", 2);
      documents.add(parts[0]);
      expected[i] = Float.parseFloat(parts[1]);
    }
    try (Model scorer = Model.open(files[2]);
        Embedder embedder = scorer.embedder()) {
      Tests.check(scorer.info().makesScores, "it makes scores");
      float[][] found = embedder.rerank(lines.get(0), documents);
      Tests.equal(expected.length, found.length);
      for (int i = 0; i < expected.length; ++i) {
        Tests.near(new float[] {expected[i]}, found[i], 1, TOLERANCE);
      }
      Tests.fails(
          Status.UNSUPPORTED,
          "instruction",
          () -> embedder.rerank(lines.get(0), documents, "judge"));
    }
  }

  void testRefusalsNameTheReason() throws Exception {
    EmbedOptions options = new EmbedOptions();
    options.maxTokens = 1_000_000;
    Tests.fails(Status.BAD_ARGUMENT, "max_tokens", () -> model.embedder(options));
    options.maxTokens = -1;
    Tests.fails(Status.BAD_ARGUMENT, "maxTokens is -1", () -> Embedder.plan(model, options));
    Embedder embedder = model.embedder();
    Tests.fails(Status.UNSUPPORTED, "not scores", () -> embedder.rerank("a", texts));
    Tests.throwsNull(() -> embedder.embed(Arrays.asList("a", null)));
    Tests.throwsNull(() -> embedder.rerank(null, texts));
    embedder.cancel();
    Tests.fails(Status.CANCELLED, "", () -> embedder.embed(texts));
    Tests.equal(texts.size(), embedder.embed(texts).length);
    embedder.close();
    embedder.cancel();
    Tests.fails(Status.BAD_STATE, "closed", () -> embedder.embed(texts));
  }

  void testCancelAndCloseFromAnotherThread() throws Exception {
    List<String> many = Collections.nCopies(50_000, texts.get(3));
    Embedder embedder = model.embedder();
    Tests.ends(
        () -> embedder.embed(many), () -> Tests.isBusy(embedder::counts), embedder::cancel);
    Tests.ends(
        () -> embedder.embed(many), () -> Tests.isBusy(embedder::counts), embedder::close);
  }

  void testModelClosedBeforeItsEmbedder() {
    Model closed = Model.open(files[0]);
    try (Embedder embedder = closed.embedder()) {
      closed.close();
      Tests.near(vectors.get(0), embedder.embed(texts)[0], 1, TOLERANCE);
    }
  }
}
