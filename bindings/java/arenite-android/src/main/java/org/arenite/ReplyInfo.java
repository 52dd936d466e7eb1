// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * Parts that are recognised in a model's replies. The fields are those of arn_reply_info in
 * arenite.h.
 */
public final class ReplyInfo {
  /** 1: reasoning is recognised */
  public boolean hasReasoning;
  /** 1: tool calls are recognised */
  public boolean hasCalls;
  /** The texts around reasoning, or "". Valid as long as the model. */
  public String reasoningBegin;
  public String reasoningEnd;
}
