// Replies of a conversation as a Flow.
package org.arenite

import kotlin.coroutines.cancellation.CancellationException
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.channels.SendChannel
import kotlinx.coroutines.channels.awaitClose
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.callbackFlow
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.isActive
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking

/** A part of a reply; [End] is the last. The parts of a call end with [CallEnd]. */
interface ReplyPart {
  /** A piece of the answer. */
  data class Text(val text: String) : ReplyPart

  /** A piece of the reasoning. */
  data class Reasoning(val text: String) : ReplyPart

  /** A tool call begins. */
  data class CallBegin(val tool: String) : ReplyPart

  /** The id that the model gave to the call. */
  data class CallId(val id: String) : ReplyPart

  /** A piece of the call's arguments, which together are one JSON value. */
  data class CallArguments(val json: String) : ReplyPart

  /** The call ends. [problem]: why it is incomplete; null: it is complete. */
  data class CallEnd(val problem: String?) : ReplyPart

  /** The reply ends: why, and its counts. */
  data class End(val result: ConversationResult) : ReplyPart
}

private fun partOf(event: ReplyEvent, text: String): ReplyPart =
  when (event) {
    ReplyEvent.TEXT -> ReplyPart.Text(text)
    ReplyEvent.REASONING -> ReplyPart.Reasoning(text)
    ReplyEvent.CALL_BEGIN -> ReplyPart.CallBegin(text)
    ReplyEvent.CALL_ID -> ReplyPart.CallId(text)
    ReplyEvent.CALL_ARGUMENTS -> ReplyPart.CallArguments(text)
    ReplyEvent.CALL_END -> ReplyPart.CallEnd(text.ifEmpty { null })
  }

/**
 * Streams the reply to the last message. Each collection makes a reply, on [dispatcher], slightly
 * ahead of the collector. A collector that is cancelled cancels the session, in the prompt too,
 * within one layer's time; what was generated stays in the conversation. Failures are thrown as
 * [AreniteException].
 */
fun Conversation.replyFlow(
  options: GenerateOptions = GenerateOptions(),
  dispatcher: CoroutineDispatcher = Dispatchers.IO,
): Flow<ReplyPart> = callbackFlow {
  val running = RunningReply(session())
  launch(dispatcher) {
    val job = coroutineContext.job
    try {
      val result = running.use {
        reply(options) { event, text -> sendUnlessCancelled(partOf(event, text), job) }
      }
      send(ReplyPart.End(result))
      channel.close()
    } catch (e: AreniteException) {
      // A cancelled collector's own cancellation ends the flow: "cancelled" is no failure then.
      if (isActive) channel.close(e)
    }
  }
  awaitClose(running::cancel)
}

/**
 * Sends from a thread that may block. Returns false if [job] is cancelled: trySendBlocking would go
 * on waiting then, since nobody receives and the channel stays open until its producer ends.
 */
private fun <T> SendChannel<T>.sendUnlessCancelled(element: T, job: Job): Boolean {
  if (trySend(element).isSuccess) return true
  return try {
    runBlocking(job) { send(element) }
    true
  } catch (e: CancellationException) {
    false
  }
}

/**
 * A reply that can be cancelled before it runs, which skips it, and while it runs. The session is
 * cancelled only in between: a cancel before or after would end its next call.
 */
private class RunningReply(private val session: Session) {
  private var isRunning = false
  private var isCancelled = false

  fun cancel() = synchronized(this) {
    isCancelled = true
    if (isRunning) session.cancel()
  }

  fun <T> use(reply: () -> T): T {
    synchronized(this) {
      if (isCancelled) throw CancellationException("the collector is cancelled")
      isRunning = true
    }
    try {
      return reply()
    } finally {
      synchronized(this) {
        isRunning = false
        session.clearCancel()
      }
    }
  }
}

/** Appends a message of the user and streams the reply to it. */
fun Conversation.send(
  message: String,
  options: GenerateOptions = GenerateOptions(),
): Flow<ReplyPart> {
  add(message)
  return replyFlow(options)
}

/** Streams the answer's text alone. */
fun Flow<ReplyPart>.texts(): Flow<String> = filterIsInstance<ReplyPart.Text>().map { it.text }
