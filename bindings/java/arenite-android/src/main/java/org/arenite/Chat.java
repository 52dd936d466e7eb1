package org.arenite;

import java.util.Collections;
import java.util.List;

/**
 * Renders conversations with the model's chat template. Allows one call at a time; several
 * instances may share a model.
 */
public final class Chat implements AutoCloseable {
  private static final class ChatHandle extends Handle {
    private final Handle model;

    ChatHandle(Handle model, long pointer) {
      super("chat", false, pointer);
      this.model = model;
    }

    @Override
    void destroy(long pointer) {
      Native.destroyChat(pointer);
      model.release();
    }
  }

  private final ChatHandle handle;
  private final Model model;

  Chat(Model model, long arenaBytes, long maxSteps) {
    long parent = model.handle.acquire();
    long pointer = 0;
    try {
      pointer = Native.createChat(parent, arenaBytes, maxSteps);
    } finally {
      if (pointer == 0) {
        model.handle.release();
      }
    }
    handle = new ChatHandle(model.handle, pointer);
    this.model = model;
  }

  @Override
  public void close() {
    handle.close(null);
  }

  /** Returns the text of a conversation up to the start of the answer. */
  public String render(Messages messages) {
    return render(messages.toString(), null, null, null, true);
  }

  /** Returns the token ids of a conversation up to the start of the answer. */
  public int[] tokenize(Messages messages) {
    return tokenize(messages.toString(), null, null, null, true);
  }

  /** Same, with the images of the messages in their order. */
  public int[] tokenize(Messages messages, List<Image> images) {
    return tokenize(messages.toString(), null, null, null, true, images);
  }

  /**
   * Returns the token ids of a conversation. Only the template writes special tokens; messages,
   * tools and variables are plain text. Same parameters as render.
   */
  public int[] tokenize(
      String messages,
      String tools,
      String variables,
      String templateName,
      boolean addGenerationPrompt) {
    return tokenize(
        messages,
        tools,
        variables,
        templateName,
        addGenerationPrompt,
        Collections.<Image>emptyList());
  }

  /** Same, with the images of the messages' parts {"type": "image"}, in their order. */
  public int[] tokenize(
      String messages,
      String tools,
      String variables,
      String templateName,
      boolean addGenerationPrompt,
      List<Image> images) {
    long chat = handle.acquire();
    try {
      long parent = model.handle.acquire();
      try {
        return Native.tokenizeChat(
            parent,
            chat,
            Native.utf8(messages),
            Native.utf8(tools),
            Native.utf8(variables),
            Native.utf8(templateName),
            addGenerationPrompt,
            images.isEmpty() ? null : Image.sizes(images));
      } finally {
        model.handle.release();
      }
    } finally {
      handle.release();
    }
  }

  /**
   * Returns the text of a conversation, for display. Use tokenize for a model's input.
   *
   * @param messages a JSON array of objects with "role", "content" and other keys of the template
   * @param tools a JSON array of schemas, or null
   * @param variables a JSON object of further variables, or null
   * @param templateName null: "tool_use" with tools if there is one, else "default"
   * @param addGenerationPrompt true: ends the text at the start of the answer
   */
  public String render(
      String messages,
      String tools,
      String variables,
      String templateName,
      boolean addGenerationPrompt) {
    long chat = handle.acquire();
    try {
      return Native.text(
          Native.renderChat(
              chat,
              Native.utf8(messages),
              Native.utf8(tools),
              Native.utf8(variables),
              Native.utf8(templateName),
              addGenerationPrompt));
    } finally {
      handle.release();
    }
  }
}
