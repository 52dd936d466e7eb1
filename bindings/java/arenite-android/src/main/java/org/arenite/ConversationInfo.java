// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Sizes of a conversation. The fields are those of arn_conversation_info in arenite.h. */
public final class ConversationInfo {
  public int nMessages;
  /** of the messages that have been read or written by the model */
  public int nTokens;
  /** of the session */
  public int contextTokens;
  /** 1: reasoning is recognised */
  public boolean hasReasoning;
  /** 1: tool calls are recognised */
  public boolean hasCalls;
  /** of text_bytes */
  public long messagesBytes;
  public long textBytes;
}
