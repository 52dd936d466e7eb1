package org.arenite;

/**
 * Renders conversations by the model's chat template. In one call at a time; several may share a
 * model.
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
  }

  @Override
  public void close() {
    handle.close(null);
  }

  /** The text of a conversation that ends where the answer begins. */
  public String render(Messages messages) {
    return render(messages.toString(), null, null, null, true);
  }

  /**
   * The text of a conversation. Tokenize it with special = false: templates write the tokens that
   * begin a text themselves.
   *
   * @param messages a JSON array of objects with "role", "content" and what the template knows
   * @param tools a JSON array of schemas, or null
   * @param variables a JSON object of further variables, or null
   * @param templateName null: "tool_use" with tools if there is one, else "default"
   * @param addGenerationPrompt whether the text ends where the answer begins
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
