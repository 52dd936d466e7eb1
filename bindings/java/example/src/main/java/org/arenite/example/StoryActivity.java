package org.arenite.example;

import android.app.Activity;
import android.content.ComponentCallbacks2;
import android.os.Bundle;
import android.view.View;
import android.widget.EditText;
import android.widget.TextView;
import java.io.IOException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.arenite.AreniteException;
import org.arenite.GenerateOptions;
import org.arenite.Model;
import org.arenite.Session;
import org.arenite.SessionOptions;

/**
 * Shows a story while it is told. The model runs on one thread of its own, to which the session
 * belongs; the main thread asks for things and shows text.
 */
public final class StoryActivity extends Activity {
  private final ExecutorService worker = Executors.newSingleThreadExecutor();
  private volatile int wanted; // the story that is to be told; only the main thread counts it on
  private Model model;
  private volatile Session session;
  private TextView story;
  private EditText prompt;

  // ---- on the worker: the lines that matter

  private void open() {
    try {
      model = Model.open(Assets.file(this, "story.arn").getPath());
      SessionOptions options = new SessionOptions();
      options.contextTokens = 512;
      session = model.session(options); // all memory is taken here
      session.setSampling(model.sampling()); // tokens are chosen as the model wants it
    } catch (IOException | AreniteException e) {
      show(e.getMessage());
    }
  }

  private void tell(String text, int number) {
    try {
      session.reset();
      session.prefill(text);
      GenerateOptions options = new GenerateOptions();
      options.maxTokens = 256;
      session.generate(
          options,
          piece -> {
            show(piece); // whole characters, as they come
            return wanted == number; // go on
          });
    } catch (AreniteException e) {
      show("\n" + e.getMessage());
    }
  }

  private void close() {
    if (session != null) {
      session.close();
    }
    if (model != null) {
      model.close();
    }
  }

  // ---- on the main thread

  @Override
  protected void onCreate(Bundle state) {
    super.onCreate(state);
    setContentView(R.layout.story);
    story = (TextView) findViewById(R.id.story);
    prompt = (EditText) findViewById(R.id.prompt);
    findViewById(R.id.tell).setOnClickListener(this::onTell);
    findViewById(R.id.stop).setOnClickListener(this::onStop);
    worker.execute(this::open);
  }

  private void onTell(View button) {
    int number = ++wanted; // ends the story that is being told
    String text = prompt.getText().toString();
    worker.execute(
        () -> {
          if (session != null && wanted == number) {
            runOnUiThread(() -> story.setText(text));
            tell(text, number);
          }
        });
  }

  private void onStop(View button) {
    ++wanted;
  }

  private void show(String text) {
    runOnUiThread(() -> story.append(text));
  }

  @Override
  public void onTrimMemory(int level) {
    super.onTrimMemory(level);
    if (level >= ComponentCallbacks2.TRIM_MEMORY_BACKGROUND) {
      worker.execute(
          () -> {
            if (session != null) {
              session.trim();
            }
          });
    }
  }

  @Override
  protected void onDestroy() {
    ++wanted;
    Session running = session;
    if (running != null) {
      running.cancel(); // a long prompt, too, ends within one layer's time
    }
    worker.execute(this::close);
    worker.shutdown();
    super.onDestroy();
  }
}
