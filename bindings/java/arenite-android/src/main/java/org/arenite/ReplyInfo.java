// Written by tools/c_api/generate.py from arenite.h: do not edit it.
package org.arenite;

/**
 * What is recognised in a model's replies. The fields are those of arn_reply_info in arenite.h.
 */
public final class ReplyInfo {
  /** 1: reasoning is recognised */
  public boolean hasReasoning;
  /** 1: tool calls are recognised */
  public boolean hasCalls;
}
