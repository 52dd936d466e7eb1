package org.arenite;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;

/**
 * Makes vectors of texts, or scores of pairs of texts, with a model whose checkpoint says how.
 *
 * <p>Allows one call at a time, from any thread; a second one fails with Status.BAD_STATE.
 * {@link #cancel} and {@link #close} may be called from any thread at any time. Several embedders
 * may share a model.
 */
public final class Embedder implements AutoCloseable {
  private static final class EmbedderHandle extends Handle {
    private final Handle model;

    EmbedderHandle(Handle model, long pointer) {
      super("embedder", false, pointer);
      this.model = model;
    }

    @Override
    void destroy(long pointer) {
      Native.destroyEmbedder(pointer);
      model.release();
    }

    @Override
    void interrupt(long pointer) {
      Native.cancelEmbedder(pointer);
    }
  }

  private final EmbedderHandle handle;
  private final EmbedPlan plan;

  Embedder(Model model, EmbedOptions options) {
    plan = plan(model, options);
    long parent = model.handle.acquire();
    long pointer = 0;
    try {
      pointer = Native.createEmbedder(parent, options);
    } finally {
      if (pointer == 0) {
        model.handle.release();
      }
    }
    handle = new EmbedderHandle(model.handle, pointer);
  }

  /** Describes what the model makes of texts; throws Status.UNSUPPORTED if nothing. */
  public static EmbedInfo info(Model model) {
    EmbedInfo info = new EmbedInfo();
    model.run(pointer -> Native.embedInfo(pointer, info));
    return info;
  }

  /**
   * Returns the checkpoint's prompts in their order: names ("query"), and the texts that are put
   * before a text.
   */
  public static Map<String, String> prompts(Model model) {
    return model.get(
        pointer -> {
          Map<String, String> prompts = new LinkedHashMap<>();
          for (int i = 0; ; ++i) {
            byte[] name = Native.embedPrompt(pointer, i, true);
            if (name == null) {
              return prompts;
            }
            prompts.put(Native.text(name), Native.text(Native.embedPrompt(pointer, i, false)));
          }
        });
  }

  /** Returns the memory of an embedder with these options; allocates nothing. */
  public static EmbedPlan plan(Model model, EmbedOptions options) {
    EmbedPlan plan = new EmbedPlan();
    model.run(pointer -> Native.embedPlan(pointer, options, plan));
    return plan;
  }

  /** Returns the memory of this embedder, and its options after defaults are applied. */
  public EmbedPlan plan() {
    return plan;
  }

  /** Ends a call of another thread and destroys the embedder. Frees its memory. */
  @Override
  public void close() {
    handle.close(null);
  }

  /**
   * Ends the call running on another thread, or the next one, within one step of the model: it
   * throws an exception with Status.CANCELLED.
   */
  public void cancel() {
    handle.signal(Native::cancelEmbedder);
  }

  /** Returns a vector for each text, after the checkpoint's default prompt if it has one. */
  public float[][] embed(List<String> texts) {
    return embed(texts, null);
  }

  /**
   * Returns a vector for each text, of the width of the plan; the scores of a model that scores
   * single texts.
   *
   * @param prompt put before each text; null: the checkpoint's default one; "": none
   */
  public float[][] embed(List<String> texts, String prompt) {
    byte[][] utf8 = utf8(texts);
    return rows(
        embedder -> Native.embed(embedder, plan.width, Native.utf8(prompt), utf8));
  }

  /**
   * Same, for token ids with special tokens.
   *
   * @param firstLengths how many of each text's tokens have token type 0, those after them have
   *     type 1; null: all
   */
  public float[][] embedIds(int[][] texts, int[] firstLengths) {
    if (firstLengths != null && firstLengths.length != texts.length) {
      throw new IllegalArgumentException(
          texts.length + " texts and " + firstLengths.length + " first lengths");
    }
    int[] lengths = new int[texts.length];
    int total = 0;
    for (int i = 0; i < texts.length; ++i) {
      lengths[i] = texts[i].length;
      total = Math.addExact(total, lengths[i]);
    }
    int[] ids = new int[total];
    int at = 0;
    for (int[] text : texts) {
      System.arraycopy(text, 0, ids, at, text.length);
      at += text.length;
    }
    return rows(
        embedder -> Native.embedIds(embedder, plan.width, ids, lengths, firstLengths));
  }

  /** Returns the scores of each document, with the model's own instruction. */
  public float[][] rerank(String query, List<String> documents) {
    return rerank(query, documents, "");
  }

  /**
   * Returns the scores of each document, most often one: the higher, the more relevant to the
   * query. Throws Status.UNSUPPORTED if the model makes vectors.
   *
   * @param instruction of models whose pairs have one; "": the model's own
   */
  public float[][] rerank(String query, List<String> documents, String instruction) {
    byte[][] utf8 = utf8(documents);
    return rows(
        embedder ->
            Native.rerank(
                embedder, plan.width, Native.utf8(instruction), Native.utf8(query), utf8));
  }

  /** Returns what the last successful call did. */
  public EmbedCounts counts() {
    EmbedCounts counts = new EmbedCounts();
    return get(
        embedder -> {
          Native.embedCounts(embedder, counts);
          return counts;
        });
  }

  private <T> T get(LongFunction<T> call) {
    long embedder = handle.acquire();
    try {
      return call.apply(embedder);
    } finally {
      handle.release();
    }
  }

  private float[][] rows(LongFunction<float[]> call) {
    float[] all = get(call);
    float[][] rows = new float[all.length / plan.width][];
    for (int i = 0; i < rows.length; ++i) {
      rows[i] = Arrays.copyOfRange(all, i * plan.width, (i + 1) * plan.width);
    }
    return rows;
  }

  private static byte[][] utf8(List<String> texts) {
    byte[][] utf8 = new byte[texts.size()][];
    for (int i = 0; i < utf8.length; ++i) {
      utf8[i] = Native.utf8(texts.get(i));
    }
    return utf8;
  }
}
