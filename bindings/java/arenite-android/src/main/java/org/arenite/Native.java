package org.arenite;

import java.nio.ByteBuffer;
import java.nio.charset.Charset;

/** Native methods, one per function of the C API. Handles are addresses; texts are UTF-8. */
final class Native {
  static final Charset UTF_8 = Charset.forName("UTF-8");

  static {
    System.loadLibrary("arenite_jni");
  }

  private Native() {}

  /** Converts a text to UTF-8; null stays null. Also called by native code. */
  static byte[] utf8(String text) {
    return text == null ? null : text.getBytes(UTF_8);
  }

  /** Converts UTF-8 to a text. Also called by native code. */
  static String text(byte[] utf8) {
    return new String(utf8, UTF_8);
  }

  static native int version();

  static native long openPath(
      byte[] path, int verifyHashes, byte[] publicKey, int residency);

  static native long openFd(
      int fd, long offset, long length, int verifyHashes, byte[] publicKey, int residency);

  static native long openReader(
      BundleReader reader, long length, int verifyHashes, byte[] publicKey)
      throws java.io.IOException;

  static native void closeModel(long model);

  static native void modelInfo(long model, ModelInfo out);

  static native void modelSampling(long model, Sampling out);

  static native void modelResidency(long model, ResidencyInfo out);

  static native int[] modelPrefix(long model);

  static native int[] tokenize(long model, byte[] text, boolean special, boolean plain);

  static native byte[] detokenize(long model, int[] ids, boolean skipSpecial);

  static native byte[] detokenizerNext(long model, int[] state, int id, boolean skipSpecial);

  static native byte[] detokenizerEnd(long model, int[] state);

  static native byte[] tokenText(long model, int id);

  static native void plan(long model, SessionOptions options, MemoryPlan out);

  static native void planGroup(long model, SessionOptions options, int index, KvGroup out);

  static native long createSession(
      long model, SessionOptions options, byte[] deviceFolder, long[] adapters);

  static native long openAdapter(long model, byte[] path, byte[] publicKey);

  static native void closeAdapter(long adapter);

  static native void setAdapters(long session, int[] indices, float[] scales);

  static native void destroySession(long session);

  static native void prefill(long session, int[] ids, PrefillListener listener);

  static native int follow(long session, int[] ids, PrefillListener listener);

  static native void usePrefix(long session);

  static native void encodeIds(long session, int[] ids);

  static native void encodeFeatures(long session, float[] features, int frames, int width);

  static native int decode(long session);

  static native int sample(long session);

  static native float[] logits(long session, int vocab);

  static native float[] logprobs(long session, int id, int[] top);

  static native float[] prefillLogits(long session, int[] ids, int vocab);

  static native int[] tokens(long session);

  static native int length(long session);

  static native void reset(long session);

  static native void rewind(long session, int position);

  static native int firstRewindPosition(long session);

  static native int resumePosition(long session, int position);

  static native void mark(long session);

  static native long trim(long session);

  static native void select(long session, int sequence);

  static native int selected(long session);

  static native void fork(long session, int from, int to);

  static native void step(long session, int[] sequences, int[] ids);

  static native int[] decodeBatch(long session, int[] sequences);

  static native void save(long session, byte[] path);

  static native byte[] saveBytes(long session);

  static native void restore(long session, byte[] path, int verify, boolean constraints);

  static native void restoreBytes(
      long session, byte[] data, int verify, boolean constraints);

  static native void kvLayer(long session, int layer, KvLayer out);

  static native float[] readKv(long session, int layer, int first, int n, boolean keys);

  static native void backend(long session, BackendInfo out);

  static native void cpus(long session, SessionCpus out);

  static native void thermalZone(long session, int index, ThermalZone out);

  static native boolean cpuCluster(int index, CpuCluster out);

  static native void stats(long session, Stats out);

  static native void resetStats(long session);

  static native void setSampling(long session, Sampling sampling);

  static native void setConstraint(
      long session,
      int kind,
      byte[] text,
      boolean anyOrder,
      boolean anyWhitespace,
      boolean chooseForced,
      int first);

  static native void constraintStats(long session, ConstraintStats out);

  static native void cancel(long session);

  static native void clearCancel(long session);

  static native long randomSeed();

  static native void generate(
      long session,
      int maxTokens,
      boolean ignoreEos,
      byte[][] stops,
      int[] extraEosIds,
      int nTopLogprobs,
      int[] logprobIds,
      float[] logprobs,
      PieceListener listener,
      GenerateResult out);

  static native int beamSearch(long session, BeamOptions options, int[] extraEosIds);

  static native int[] beam(long session, int index, float[] outScore);

  static native long createChat(long model, long arenaBytes, long maxSteps);

  static native void destroyChat(long chat);

  static native byte[] renderChat(
      long chat,
      byte[] messages,
      byte[] tools,
      byte[] variables,
      byte[] templateName,
      boolean addGenerationPrompt);

  static native int[] tokenizeChat(
      long model,
      long chat,
      byte[] messages,
      byte[] tools,
      byte[] variables,
      byte[] templateName,
      boolean addGenerationPrompt,
      int[] imageSizes);

  static native long createConversation(long session, ConversationOptions options);

  static native void destroyConversation(long conversation);

  static native void addMessage(long conversation, byte[] role, byte[] text);

  static native void addMessages(long conversation, byte[] json);

  static native void addToolResult(long conversation, int call, byte[] text);

  static native void undo(long conversation, boolean onlyReply);

  static native void truncate(long conversation, int nMessages);

  static native byte[] messages(long conversation);

  static native void conversationInfo(long conversation, ConversationInfo out);

  static native void reply(
      long session,
      long conversation,
      int maxTokens,
      boolean ignoreEos,
      byte[][] stops,
      int[] extraEosIds,
      int nTopLogprobs,
      int[] logprobIds,
      float[] logprobs,
      ReplyListener listener,
      PrefillListener progress,
      ConversationResult out);

  static native void embedInfo(long model, EmbedInfo out);

  static native byte[] embedPrompt(long model, int index, boolean isName);

  static native void embedPlan(long model, EmbedOptions options, EmbedPlan out);

  static native long createEmbedder(long model, EmbedOptions options);

  static native void destroyEmbedder(long embedder);

  static native void cancelEmbedder(long embedder);

  static native float[] embed(long embedder, int width, byte[] prompt, byte[][] texts);

  static native float[] embedIds(
      long embedder, int width, int[] ids, int[] lengths, int[] firstLengths);

  static native float[] rerank(
      long embedder, int width, byte[] instruction, byte[] query, byte[][] documents);

  static native void embedCounts(long embedder, EmbedCounts out);

  static native void imageInfo(long model, ImageInfo out);

  static native void imageLayout(long model, int width, int height, ImageLayout out);

  static native byte[] expandImages(long model, int[] sizes, byte[] prompt);

  static native void imagePlan(long model, ImageOptions options, ImagePlan out);

  static native long createImageEncoder(long model, ImageOptions options);

  static native void imageBackend(long encoder, BackendInfo out);

  static native void destroyImageEncoder(long encoder);

  static native void cancelImageEncoder(long encoder);

  static native float[] encodeRgb(
      long model, long encoder, byte[] rgb, int width, int height, long stride);

  static native float[] encodeBuffer(
      long model,
      long encoder,
      ByteBuffer direct,
      int position,
      int width,
      int height,
      long stride);

  static native float[] encodeArgb(long model, long encoder, int[] argb, int width, int height);

  static native void imageCounts(long encoder, ImageCounts out);

  static native void prefillImages(
      long model, long session, int[] ids, float[][] images, PrefillListener listener);

  static native int followImages(
      long model, long session, int[] ids, float[][] images, PrefillListener listener);

  static native void transcribeInfo(long model, TranscribeInfo out);

  static native byte[] language(long model, int index);

  static native long transcriberPlan(long model, SessionOptions options);

  static native long createTranscriber(long session);

  static native void destroyTranscriber(long transcriber);

  static native void transcribe(
      long transcriber,
      float[] samples,
      TranscribeOptions options,
      SegmentReceiver receiver,
      TranscribeResult out);
}
