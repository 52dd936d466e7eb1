#!/bin/bash -eu
# Builds the fuzzers in the image of OSS-Fuzz, whose environment has the compiler, the flags of the
# sanitizer and of the engine, and $OUT. Leaves out those that read files of the tree when they run.
cd "$SRC/arenite"
cmake -S . -B "$WORK/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DARENITE_FUZZ=ON \
  "-DARENITE_FUZZ_ENGINE=$LIB_FUZZING_ENGINE" -DARENITE_INSTALL=OFF -DARENITE_SIMD=native \
  -DARENITE_UNITY_BUILD=ALL -DARENITE_VULKAN=OFF
cmake --build "$WORK/build" --target arn_fuzz_programs

for program in "$WORK"/build/bin/fuzz_*; do
  name=$(basename "$program")
  case $name in
    fuzz_http | fuzz_sentencepiece | fuzz_text | fuzz_tokenizer | fuzz_tokenizer_json) continue ;;
  esac
  cp "$program" "$OUT/"
  corpus="tests/fuzz/corpus/${name#fuzz_}"
  if [[ -d $corpus ]]; then zip -q -j "$OUT/${name}_seed_corpus.zip" "$corpus"/*; fi
done
cp tests/fuzz/chat_dict.txt "$OUT/fuzz_chat.dict"
cp tests/fuzz/reply_dict.txt "$OUT/fuzz_reply.dict"
cp tests/fuzz/schema_dict.txt "$OUT/fuzz_schema.dict"
cp tests/fuzz/schema_dict.txt "$OUT/fuzz_tool_calls.dict"
