#include "tools/serve/serve_options.h"

#include "tools/arenite/adapters.h"
#include "tools/arenite/io.h"

namespace arn::tool {

void AddServeOptions(CLI::App* sub, ServeArguments* arguments) {
  arguments->session.sequences = 4;
  arguments->session.state_snapshots = 8;
  AddModelOptions(sub, &arguments->model);
  sub->add_option("--host", arguments->host,
                  "Address to listen on; 0.0.0.0 is every one of this machine")
      ->capture_default_str();
  sub->add_option("--port", arguments->port, "Port; 0: a free one, which is printed")
      ->check(CLI::Range(0u, 65535u))
      ->capture_default_str();
  sub->add_option("--name", arguments->name, "Name of the model in the API [the bundle's file]");
  AddAdapterOption(sub, &arguments->adapters,
                   "each is a model of its own, by the name of its file");
  sub->add_option("--api-key-file", arguments->api_key_file,
                  "File with keys, one a line; requests then need one of them");
  sub->add_option("--cors", arguments->cors,
                  "Origin of web pages that may use the API, such as https://example.org; *: all");
  CLI::Option* certificate =
      sub->add_option("--tls-certificate", arguments->certificate,
                      "Certificate in PEM, with those that signed it: the server then speaks "
                      "HTTPS, if it is built with ARENITE_SERVE_TLS");
  CLI::Option* key = sub->add_option("--tls-key", arguments->key, "Its private key in PEM");
  certificate->needs(key);
  key->needs(certificate);
  sub->add_option("--queue", arguments->queue,
                  "Requests that may wait for a sequence; more are refused (429)")
      ->check(CLI::Range(1u, 65536u))
      ->capture_default_str();
  sub->add_option("--connections", arguments->connections,
                  "Connections that are answered at a time; more wait")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  sub->add_option(
      "--max-body", arguments->max_body,
      Format("Longest body of a request; more is 413 [1M; %s with a transcriber or images]",
             kMediaBody));
  sub->add_option("--max-tokens", arguments->max_tokens,
                  "Tokens of a reply whose request sets no limit (0: what the context holds)")
      ->capture_default_str();
  sub->add_option("--time-limit", arguments->time_limit, "Seconds that a request may take")
      ->check(CLI::Range(1u, 86400u))
      ->capture_default_str();
  CLI::Option* state = sub->add_option(
      "--state-folder", arguments->state_folder,
      "Keeps what was computed of conversations in a file there, and goes on from it");
  sub->add_option("--state-bytes", arguments->state_bytes,
                  "Bytes of conversations that left the memory, in files of --state-folder; the "
                  "least recently used ones go. 0: none are kept")
      ->capture_default_str()
      ->needs(state);
  sub->add_option("--save-after", arguments->save_after,
                  "Seconds without work after which --state-folder's file is written; at the end, "
                  "too")
      ->check(CLI::Range(1u, 86400u))
      ->capture_default_str()
      ->needs(state);
  sub->add_option(
      "--embedder", arguments->embedder,
      "Bundle whose model makes the vectors of /v1/embeddings [the server's, if it can]");
  sub->add_option("--reranker", arguments->reranker,
                  "Bundle whose model makes the scores of /v1/rerank [the server's, if it can]");
  sub->add_option(
      "--transcriber", arguments->transcriber,
      "Bundle whose model writes the speech of /v1/audio down [the server's, if it can]");
  AddSessionOptions(sub, &arguments->session, "the model's, at most 4096");
  AddPoolOptions(sub, &arguments->session);
  AddSnapshotOptions(sub, &arguments->session);
  AddSpeculateOptions(sub, &arguments->session);
  sub->add_option("--constraint-memory", arguments->constraint_memory,
                  "Bytes for each sequence's compiled constraint; they are committed as they are "
                  "used")
      ->capture_default_str();
  sub->footer(
      "Prints all memory that it will use, then listens. http://HOST:PORT/ is a page to chat "
      "with.\n\nExamples:\n"
      "  arenite serve model.arn\n"
      "  arenite serve model.arn --sequences 8 --kv-tokens 16384 --host 0.0.0.0 "
      "--api-key-file keys.txt");
}

}  // namespace arn::tool
