// libFuzzer: any bytes as a SentencePiece model.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/exercise_text.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

std::vector<std::string> SentencepieceSeeds() {
  std::vector<std::string> seeds;
  for (const char* name : {"pieces_unigram", "pieces_bpe"}) {
    const std::string path = std::string(ARN_TEXT_TEST_DATA) + "/" + name + "/tokenizer.model";
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

}  // namespace

ARN_FUZZ_TARGET(sentencepiece, SentencepieceSeeds) {
  std::string problem;
  arn::test::ExerciseSentencePiece(data, size, &problem);
  arn::test::ExpectNoProblem(problem);
}
