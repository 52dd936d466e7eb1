package org.arenite;

/** A call failed. The message is the library's own sentence. */
public class AreniteException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int status;

  AreniteException(int status, String message) {
    super(message);
    this.status = status;
  }

  /** Called by native code. */
  AreniteException(int status, byte[] message) {
    this(status, Native.text(message));
  }

  /** The status of the call: one of {@link Status}. */
  public int status() {
    return status;
  }

  /** Returns true if {@link Session#cancel}, or another object's, ended the call. */
  public boolean isCancelled() {
    return status == Status.CANCELLED;
  }
}
