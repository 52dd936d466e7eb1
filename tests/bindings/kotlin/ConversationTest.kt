// Tests replies as a Flow on the demo model. Argument: the bundle.
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.flow.collect
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.arenite.AreniteException
import org.arenite.Conversation
import org.arenite.Finish
import org.arenite.GenerateOptions
import org.arenite.Model
import org.arenite.Overflow
import org.arenite.ReplyPart
import org.arenite.SessionOptions
import org.arenite.Status
import org.arenite.replyFlow
import org.arenite.send
import org.arenite.texts

private fun check(good: Boolean, what: () -> String) {
  if (!good) throw AssertionError(what())
}

private fun <T> equal(expected: T, seen: T) =
  check(expected == seen) { "expected $expected, not $seen" }

private fun atMost(n: Int) = GenerateOptions().apply { maxTokens = n }

private fun withChat(model: Model, endless: Boolean = false, test: suspend (Conversation) -> Unit) {
  val options = SessionOptions().apply {
    contextTokens = if (endless) 64 else 256
    kvPageTokens = 8
    overflow = if (endless) Overflow.SHIFT else Overflow.STOP
  }
  model.session(options).use { session ->
    session.conversation().use { chat -> runBlocking { withTimeout(60_000) { test(chat) } } }
  }
}

fun main(arguments: Array<String>) {
  Model.open(arguments[0]).use { model ->
    withChat(model) { chat ->
      val parts = chat.send("Tell me a story.", atMost(12)).toList()
      val end = parts.last() as ReplyPart.End
      equal(12, end.result.nTokens)
      equal(Finish.LENGTH, end.result.finish)
      val text = parts.filterIsInstance<ReplyPart.Text>().joinToString("") { it.text }
      check(text.isNotEmpty()) { "no text" }
      chat.undoReply()
      equal(text, chat.replyFlow(atMost(12)).texts().toList().joinToString(""))
    }
    // A collector that has seen enough, and one that is cancelled: the reply has no end of its own.
    withChat(model, endless = true) { chat ->
      val endless = GenerateOptions().apply { ignoreEos = true }
      equal(3, chat.send("Tell me a story.", endless).take(3).toList().size)
      equal(2, chat.info().nMessages)
      chat.truncate(0)
      // The cancel comes before the reply begins, or at any point while it runs.
      repeat(200) { round ->
        runBlocking {
          val seen = CountDownLatch(round % 4)
          val reply = chat.send("Tell me a story.", endless)
          val reader = launch(Dispatchers.Default) { reply.collect { seen.countDown() } }
          check(seen.await(20, TimeUnit.SECONDS)) { "reply $round ended by itself" }
          reader.cancelAndJoin()
        }
        chat.truncate(0)
      }
      // The session is free, and the next reply is not cancelled.
      check(chat.send("Hi.", atMost(4)).texts().toList().isNotEmpty()) { "no text" }
    }
    withChat(model) { chat ->
      try {
        chat.replyFlow().collect()
        throw AssertionError("nothing was thrown")
      } catch (e: AreniteException) {
        equal(Status.BAD_STATE, e.status())
      }
    }
  }
  println("3 passed, 0 failed")
}
