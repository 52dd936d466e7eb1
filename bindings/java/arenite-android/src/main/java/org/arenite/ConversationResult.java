// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * How a reply ended, and its counts. The fields are those of arn_conversation_result in arenite.h.
 */
public final class ConversationResult {
  /** Finish: why the reply ended */
  public Finish finish = Finish.NONE;
  /** tokens of the reply, without the stop token */
  public int nTokens;
  /** tokens before the reply */
  public int nPromptTokens;
  /** part of them that the session had already; the others were computed */
  public int nKept;
  /** complete tool calls: answer each, then ask for the next reply */
  public int nCalls;
  /** Status.CONTEXT_FULL before the reply: tokens that the context lacks */
  public int nMissing;
  /** messages that drops_oldest removed for this reply */
  public int nDropped;
  /** 1: the reply has joined the messages */
  public boolean isAdded;
  /** tokens that have log-probabilities, as in arn_generate_result */
  public long nLogprobs;
}
