package org.arenite;

/** Receives the events of a reply, on the thread that called {@link Conversation#reply}. */
public interface ReplyListener {
  /**
   * Called for each event.
   *
   * @param event its kind
   * @param text a piece of text, reasoning or arguments, a tool's name, a call's id, or why a call
   *     is incomplete ("": it is complete)
   * @return true to go on, false to end the reply
   */
  boolean onEvent(ReplyEvent event, String text);
}
