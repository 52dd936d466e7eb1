package org.arenite;

/**
 * A handle of the C API: given to calls, and ended once none of them runs, whatever thread closes
 * it. Shared handles may be in several calls at once and are ended by the last user. Others are in
 * one call at a time; a second one is refused.
 */
abstract class Handle {
  private final String what;
  private final boolean shared;
  private long pointer;
  private int users;
  private boolean closed;

  Handle(String what, boolean shared, long pointer) {
    this.what = what;
    this.shared = shared;
    this.pointer = pointer;
  }

  /** Ends what the pointer points at. */
  abstract void destroy(long pointer);

  /** Ends the call that runs, if it can be; only of handles that are not shared. */
  void interrupt(long pointer) {}

  /** The pointer, which stays good until {@link #release}. */
  synchronized long acquire() {
    if (closed) {
      throw new AreniteException(Status.BAD_STATE, "the " + what + " is closed");
    }
    if (users > 0 && !shared) {
      throw new AreniteException(Status.BAD_STATE, "the " + what + " is in another call");
    }
    ++users;
    return pointer;
  }

  synchronized void release() {
    --users;
    endIfUnused();
    notifyAll();
  }

  /** {@link #interrupt} beside other calls; nothing after {@link #close}. */
  synchronized void signal() {
    if (!closed) {
      interrupt(pointer);
    }
  }

  /**
   * Ends it. One that is not shared is interrupted and waited for, unless it is this thread that is
   * in the call (a listener closes its own session): then it ends when the call returns.
   */
  synchronized void close(Thread caller) {
    if (closed) {
      return;
    }
    closed = true;
    if (users > 0 && !shared) {
      interrupt(pointer);
      boolean interrupted = false;
      while (users > 0 && caller != Thread.currentThread()) {
        try {
          wait();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
    endIfUnused();
  }

  private void endIfUnused() {
    if (closed && users == 0 && pointer != 0) {
      long ended = pointer;
      pointer = 0;
      destroy(ended);
    }
  }
}
