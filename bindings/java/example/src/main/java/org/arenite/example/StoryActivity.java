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
import org.arenite.Sampling;
import org.arenite.Session;
import org.arenite.SessionOptions;

/**
 * Streams a story to the screen. A worker thread owns the session and runs the model; the main
 * thread starts stories and shows text.
 */
public final class StoryActivity extends Activity {
  private final ExecutorService worker = Executors.newSingleThreadExecutor();
  private volatile int wanted; // current story number; only the main thread increments it
  private Model model;
  private volatile Session session;
  private TextView story;
  private EditText prompt;

  // ---- worker thread: the essential calls

  private void open() {
    try {
      model = Model.open(Assets.file(this, "story.arn").getPath());
      SessionOptions options = new SessionOptions();
      options.contextTokens = 512;
      session = model.session(options); // allocates all memory
      Sampling sampling = model.sampling(); // the checkpoint's own sampling settings
      sampling.seed = Session.randomSeed(); // a different story each time
      session.setSampling(sampling);
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
            show(piece); // whole characters, as they arrive
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

  // ---- main thread

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
    int number = ++wanted; // ends the current story
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
      running.cancel(); // cancels even a long prompt within one layer's time
    }
    worker.execute(this::close);
    worker.shutdown();
    super.onDestroy();
  }
}
