package org.arenite;

import java.util.function.LongConsumer;

/**
 * Wraps a handle of the C API; destroys it once no call uses it, whatever thread closes it. Shared
 * handles allow several calls at once and are destroyed by the last user. Others allow one call at
 * a time and refuse a second.
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

  /** Destroys the object. */
  abstract void destroy(long pointer);

  /** Cancels the running call, if possible; only for handles that are not shared. */
  void interrupt(long pointer) {}

  /** Returns the pointer, valid until {@link #release}. */
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

  /** Runs a call that may overlap with other calls; does nothing after {@link #close}. */
  synchronized void signal(LongConsumer call) {
    if (!closed) {
      call.accept(pointer);
    }
  }

  /**
   * Closes the handle. Interrupts one that is not shared and waits for its call, unless this thread
   * is in that call (a listener closes its own session): then the object is destroyed when the call
   * returns.
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
