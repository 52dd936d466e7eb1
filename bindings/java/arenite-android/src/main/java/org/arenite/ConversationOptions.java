// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/** Options of a conversation. The fields are those of arn_conversation_options in arenite.h. */
public final class ConversationOptions {
  /**
   * A JSON array of the tools that the model may call, as the template takes them; null: none.
   * This text and the two below are copied.
   */
  public String tools;
  /**
   * A JSON object of further variables of the template: {"enable_thinking": false}; null: none.
   */
  public String variables;
  /** null: "tool_use" if there are tools and such a template, else "default". */
  public String templateName;
  /**
   * Maximum bytes of all messages as JSON, and of the text that the template makes of them; 0: 8
   * for each token of the context, 16 KiB, and twice the tools and variables.
   */
  public long textBytes;
  /** maximum memory of one rendering; 0: 8 MiB */
  public long arenaBytes;
  /** maximum steps of one rendering; 0: 50 million */
  public long maxSteps;
  /** sequence of the session that the conversation uses */
  public int sequence;
  /**
   * What happens when the messages no longer fit. 0: Status.CONTEXT_FULL or Status.OUT_OF_MEMORY.
   * 1: the oldest turns are dropped, from the first message behind the system's up to the next of
   * the user.
   */
  public boolean dropsOldest;
}
