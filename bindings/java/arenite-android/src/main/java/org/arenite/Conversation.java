package org.arenite;

/**
 * A conversation over one sequence of a session: messages in, events of replies out. Keeps its
 * messages, renders them with the model's chat template, and computes only what the session lacks.
 *
 * <p>Uses its session: while one of its calls runs, other calls of both fail with
 * Status.BAD_STATE. {@link Session#cancel} ends a reply.
 */
public final class Conversation implements AutoCloseable {
  private static final class ConversationHandle extends Handle {
    ConversationHandle(long pointer) {
      super("conversation", false, pointer);
    }

    @Override
    void destroy(long pointer) {
      Native.destroyConversation(pointer);
    }
  }

  /** A call of native code. */
  private interface Call<T> {
    T apply(long session, long conversation);
  }

  private final Session session;
  private final ConversationHandle handle;

  Conversation(Session session, ConversationOptions options) {
    this.session = session;
    handle =
        new ConversationHandle(
            session.get(pointer -> Native.createConversation(pointer, options)));
  }

  /** Destroys the conversation; the session keeps its tokens. */
  @Override
  public void close() {
    handle.close(null);
  }

  /** Returns the session. */
  public Session session() {
    return session;
  }

  private <T> T get(Call<T> call) {
    return session.get(
        pointer -> {
          long conversation = handle.acquire();
          try {
            return call.apply(pointer, conversation);
          } finally {
            handle.release();
          }
        });
  }

  // ---- messages

  /** Appends a message of the user. */
  public void add(String text) {
    add("user", text);
  }

  /** Appends a message. */
  public void add(String role, String text) {
    get(
        (session, conversation) -> {
          Native.addMessage(conversation, Native.utf8(role), Native.utf8(text));
          return null;
        });
  }

  /**
   * Appends a message with any keys that the template reads, as JSON: an object with "role", or an
   * array of such objects, for instance what {@link #messages} returned.
   */
  public void addJson(String json) {
    get(
        (session, conversation) -> {
          Native.addMessages(conversation, Native.utf8(json));
          return null;
        });
  }

  /** Appends the result of tool call number call, from 0, of the last reply. */
  public void addToolResult(int call, String text) {
    get(
        (session, conversation) -> {
          Native.addToolResult(conversation, call, Native.utf8(text));
          return null;
        });
  }

  /** Removes the last message of the user and all that follow it. */
  public void undo() {
    get(
        (session, conversation) -> {
          Native.undo(conversation, false);
          return null;
        });
  }

  /** Removes the last reply; {@link #reply} then makes another. */
  public void undoReply() {
    get(
        (session, conversation) -> {
          Native.undo(conversation, true);
          return null;
        });
  }

  /** Keeps the first nMessages. */
  public void truncate(int nMessages) {
    get(
        (session, conversation) -> {
          Native.truncate(conversation, nMessages);
          return null;
        });
  }

  /** Returns all messages as a JSON array. */
  public String messages() {
    return Native.text(get((session, conversation) -> Native.messages(conversation)));
  }

  /** Returns numbers of messages, tokens and bytes. */
  public ConversationInfo info() {
    ConversationInfo info = new ConversationInfo();
    return get(
        (session, conversation) -> {
          Native.conversationInfo(conversation, info);
          return info;
        });
  }

  // ---- replies

  /**
   * Generates the reply to the last message, streams its events to the listener, and appends it to
   * the messages. A reply that is cancelled stays as far as it went, and the call throws an
   * exception with Status.CANCELLED.
   */
  public ConversationResult reply(GenerateOptions options, ReplyListener listener) {
    ConversationResult result = new ConversationResult();
    byte[][] stops = options.stopBytes();
    int nTop = options.beginLogprobs();
    try {
      return get(
          (session, conversation) -> {
            Native.reply(
                session,
                conversation,
                options.maxTokens,
                options.ignoreEos,
                stops,
                options.extraEosIds,
                nTop,
                options.logprobIds(),
                options.logprobValues(),
                listener,
                this.session.prefillListener,
                result);
            return result;
          });
    } finally {
      options.endLogprobs(result.nLogprobs);
    }
  }
}
