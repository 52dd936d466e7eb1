// A chat in Kotlin: each line of the input is a message. The reply is a Flow: whoever stops to
// collect it ends it. bindings/kotlin/README.md shows how to compile it.
import kotlinx.coroutines.flow.collect
import kotlinx.coroutines.runBlocking
import org.arenite.ConversationOptions
import org.arenite.GenerateOptions
import org.arenite.Model
import org.arenite.ReplyPart
import org.arenite.SessionOptions
import org.arenite.send

fun main(arguments: Array<String>) = runBlocking {
  val options = SessionOptions().apply { contextTokens = 512 }
  val how = ConversationOptions().apply { dropsOldest = true } // when the context is full
  val limits = GenerateOptions().apply { maxTokens = 100 }
  Model.open(arguments[0]).use { model ->
    model.session(options).use { session ->
      session.setSampling(model.sampling()) // the checkpoint's own temperature and so on
      session.conversation(how).use { chat ->
        generateSequence(::readlnOrNull).forEach { line ->
          chat.send(line, limits).collect { part ->
            when (part) {
              is ReplyPart.Text -> print(part.text)
              is ReplyPart.End -> println("\n(${part.result.nTokens} tokens)")
              else -> Unit // reasoning and tool calls
            }
          }
        }
      }
    }
  }
}
