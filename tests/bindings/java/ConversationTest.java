import java.util.ArrayList;
import java.util.List;
import org.arenite.Conversation;
import org.arenite.ConversationInfo;
import org.arenite.ConversationOptions;
import org.arenite.ConversationResult;
import org.arenite.Finish;
import org.arenite.GenerateOptions;
import org.arenite.Logprobs;
import org.arenite.Model;
import org.arenite.ReplyEvent;
import org.arenite.Session;
import org.arenite.SessionOptions;
import org.arenite.Status;

/** Tests conversations and the progress of prompts on the demo model. Argument: the bundle. */
final class ConversationTest {
  private final Model model;

  ConversationTest(String bundle) {
    model = Model.open(bundle);
  }

  public static void main(String[] arguments) throws Exception {
    ConversationTest test = new ConversationTest(arguments[0]);
    Tests.run(test);
    test.model.close();
  }

  private Session session(int contextTokens) {
    SessionOptions options = new SessionOptions();
    options.contextTokens = contextTokens;
    options.prefillChunk = 16;
    return model.session(options);
  }

  private static GenerateOptions atMost(int tokens) {
    GenerateOptions options = new GenerateOptions();
    options.maxTokens = tokens;
    return options;
  }

  private static ConversationResult reply(Conversation chat, int tokens, StringBuilder text) {
    return chat.reply(
        atMost(tokens),
        (event, piece) -> {
          Tests.equal(ReplyEvent.TEXT, event);
          text.append(piece);
          return true;
        });
  }

  void testTurnsReuseWhatRan() throws Exception {
    try (Session session = session(256);
        Conversation chat = session.conversation()) {
      chat.add("system", "Be \"brief\".\n\u00e9\ud83d\ude42");
      chat.add("Tell me a story.");
      StringBuilder text = new StringBuilder();
      ConversationResult first = reply(chat, 12, text);
      Tests.equal(12, first.nTokens);
      Tests.equal(Finish.LENGTH, first.finish);
      Tests.check(first.isAdded && text.length() > 0, "no reply");
      Tests.check(
          chat.messages().contains("\"content\":\"Be \\\"brief\\\".\\n\u00e9\ud83d\ude42\""),
          chat.messages());
      int held = session.length();
      chat.add("Go on.");
      StringBuilder again = new StringBuilder();
      Tests.equal(held, reply(chat, 5, again).nKept);
      GenerateOptions logged = atMost(5);
      logged.logprobs = new Logprobs(0);
      chat.undoReply();
      chat.reply(logged, (event, piece) -> true);
      Tests.equal(5, logged.logprobs.size());
      Tests.check(logged.logprobs.get(4)[0].logprob < 0, "a log-probability");
      logged.maxTokens = 0;
      try {
        chat.reply(logged, (event, piece) -> true);
        throw new AssertionError("nothing was thrown");
      } catch (IllegalArgumentException e) {
        Tests.check(e.getMessage().contains("maxTokens"), e.getMessage());
      }
      chat.undoReply();
      StringBuilder same = new StringBuilder();
      reply(chat, 5, same);
      Tests.equal(again.toString(), same.toString());
      chat.undo();
      ConversationInfo info = chat.info();
      Tests.equal(3, info.nMessages);
      Tests.equal(256, info.contextTokens);
      String saved = chat.messages();
      chat.truncate(0);
      Tests.equal("[]", chat.messages());
      chat.addJson(saved);
      Tests.equal(saved, chat.messages());
    }
  }

  void testListenerEndsTheReply() throws Exception {
    try (Session session = session(256);
        Conversation chat = session.conversation()) {
      chat.add("Tell me a story.");
      List<String> pieces = new ArrayList<>();
      ConversationResult result =
          chat.reply(
              atMost(0),
              (event, text) -> {
                pieces.add(text);
                return pieces.size() < 3;
              });
      Tests.equal(3, pieces.size());
      Tests.equal(Finish.CALLBACK, result.finish);
      chat.undo();
      chat.add("Tell me a story.");
      try {
        chat.reply(
            atMost(0),
            (event, text) -> {
              throw new IllegalStateException("from the listener");
            });
        throw new AssertionError("nothing was thrown");
      } catch (IllegalStateException e) {
        Tests.equal("from the listener", e.getMessage());
      }
    }
  }

  void testCancelKeepsWhatWasShown() throws Exception {
    try (Session session = session(256);
        Conversation chat = session.conversation()) {
      chat.add("Tell me a story.");
      StringBuilder text = new StringBuilder();
      Tests.fails(
          Status.CANCELLED,
          "",
          () ->
              chat.reply(
                  atMost(0),
                  (event, piece) -> {
                    text.append(piece);
                    session.cancel();
                    return true;
                  }));
      Tests.check(text.length() > 0, "no text");
      Tests.equal(2, chat.info().nMessages);
    }
  }

  void testProgressOfAPrompt() throws Exception {
    try (Session session = session(256);
        Conversation chat = session.conversation()) {
      List<Long> seen = new ArrayList<>();
      session.setPrefillListener(
          (done, total) -> {
            seen.add(done);
            seen.add(total);
            return true;
          });
      int[] ids = new int[40];
      java.util.Arrays.fill(ids, 5);
      session.prefill(ids);
      Tests.equal("[16, 40, 32, 40, 40, 40]", seen.toString());
      seen.clear();
      session.reset();
      Tests.equal(0, session.follow(ids));
      Tests.equal(6, seen.size());
      chat.add(new String(new char[100]).replace('\0', 'x'));
      seen.clear();
      reply(chat, 1, new StringBuilder());
      Tests.check(seen.size() >= 2, "no progress of a reply's prompt");
      session.reset();
      session.setPrefillListener((done, total) -> false);
      Tests.fails(Status.CANCELLED, "", () -> session.prefill(ids));
      Tests.equal(16, session.length());
      session.setPrefillListener(
          (done, total) -> {
            throw new IllegalStateException("from the listener");
          });
      try {
        session.prefill(ids);
        throw new AssertionError("nothing was thrown");
      } catch (IllegalStateException e) {
        Tests.equal("from the listener", e.getMessage());
      }
      session.setPrefillListener(null);
      session.prefill(ids);
    }
  }

  void testRefusals() throws Exception {
    try (Session session = session(64)) {
      ConversationOptions wrong = new ConversationOptions();
      wrong.tools = "{}";
      Tests.fails(Status.BAD_ARGUMENT, "tools", () -> session.conversation(wrong));
      ConversationOptions other = new ConversationOptions();
      other.sequence = 1;
      Tests.fails(Status.BAD_ARGUMENT, "sequence is 1", () -> session.conversation(other));
      Conversation chat = session.conversation();
      Tests.fails(Status.BAD_STATE, "no message", () -> reply(chat, 1, new StringBuilder()));
      Tests.fails(Status.BAD_STATE, "", chat::undo);
      Tests.fails(Status.BAD_STATE, "", chat::undoReply);
      Tests.fails(Status.BAD_ARGUMENT, "n_messages is 1", () -> chat.truncate(1));
      Tests.fails(Status.BAD_ARGUMENT, "nMessages", () -> chat.truncate(-1));
      Tests.fails(Status.NOT_FOUND, "call 0", () -> chat.addToolResult(0, "x"));
      Tests.fails(Status.BAD_ARGUMENT, "message", () -> chat.addJson("{}"));
      chat.add(new String(new char[300]).replace('\0', 'x'));
      Tests.fails(
          Status.CONTEXT_FULL, "the context 64", () -> reply(chat, 1, new StringBuilder()));
      Tests.fails(Status.BAD_ARGUMENT, "maxTokens", () -> reply(chat, -1, new StringBuilder()));
      chat.close();
      Tests.fails(Status.BAD_STATE, "closed", () -> chat.add("x"));
    }
  }
}
