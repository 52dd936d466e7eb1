// Expanded: a prompt whose image markers are replaced.
#pragma once

#include "bindings/java/arenite-android/src/main/cpp/support.h"

namespace arn::jni {

struct Expanded {
  Buffer<char> text;
  size_t n = 0;                 // bytes of the text
  Buffer<arn_text_span> plain;  // the spans of the prompt, in the new text

  // sizes: width and height of each image. Returns false if an exception is pending.
  bool Read(JNIEnv* env, const arn_model* model, const InInts& sizes, const char* prompt,
            size_t prompt_bytes, const arn_text_span* spans, size_t n_spans) {
    Buffer<arn_image_size> images;
    if (!images.Allocate(env, sizes.size() / 2) || !plain.Allocate(env, n_spans)) return false;
    for (size_t i = 0; i < images.size(); ++i) {
      images.data()[i] = {static_cast<uint32_t>(sizes.data()[2 * i]),
                          static_cast<uint32_t>(sizes.data()[2 * i + 1])};
    }
    Error error;
    return Fetch(
        env, prompt_bytes + 4096, &text, &n,
        [&](char* out, size_t capacity, size_t* count) {
          return arn_image_expand(model, images.data(), images.size(), prompt, prompt_bytes, spans,
                                  n_spans, error.text, sizeof error.text, out, capacity, count,
                                  plain.data());
        },
        [&](arn_status status) { return error.Check(env, status); });
  }
};

}  // namespace arn::jni
