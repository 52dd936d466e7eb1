// Conversion failures: one sentence that names the cause, and no leftover files.
#include <signal.h>
#include <sys/resource.h>

#include <cstring>
#include <limits>

#include "converter/write/bundle_writer.h"
#include "converter/write/out_file.h"
#include "platform/base/hash.h"
#include "tests/unit/converter/bundle_fixture.h"

namespace arn::convert {
namespace {

using test::TinyCheckpoint;
using test::TinyTensors;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConvertErrors : public ConvertTest {
 protected:
  std::string ErrorOfEdit(const std::function<void(TinyTensors&)>& edit, DType dtype = DType::kInt8,
                          const TinyCheckpoint& tiny = {}) {
    WriteCheckpoint(tiny, edit);
    const std::string error = ErrorOfRun(Options(dtype));
    EXPECT_THAT(OutputFiles(), IsEmpty());
    return error;
  }
  static void SetFloat(test::TinyTensor* tensor, size_t index, float value) {
    std::memcpy(tensor->bytes.data() + 4 * index, &value, 4);
  }
};

TEST_F(ConvertErrors, MissingTensors_AreAllNamed) {
  EXPECT_THAT(ErrorOfEdit([](TinyTensors& t) {
                t.erase("model.layers.1.mlp.up_proj.weight");
                t.erase("model.norm.weight");
              }),
              AllOf(HasSubstr("lacks 2 tensors"), HasSubstr("model.layers.1.mlp.up_proj.weight"),
                    HasSubstr("model.norm.weight")));
}

TEST_F(ConvertErrors, MissingBias_IsNamed) {
  TinyCheckpoint tiny;
  tiny.qkv_bias = true;
  tiny.architecture = "Qwen2ForCausalLM";
  EXPECT_THAT(
      ErrorOfEdit([](TinyTensors& t) { t.erase("model.layers.0.self_attn.k_proj.bias"); },
                  DType::kInt8, tiny),
      HasSubstr(
          "lacks 1 tensor that Qwen2ForCausalLM needs: model.layers.0.self_attn.k_proj.bias"));
}

TEST_F(ConvertErrors, MissingHead_MentionsTying) {
  TinyCheckpoint tiny;
  tiny.tied = false;
  EXPECT_THAT(ErrorOfEdit([](TinyTensors& t) { t.erase("lm_head.weight"); }, DType::kInt8, tiny),
              HasSubstr("lm_head.weight (tie_word_embeddings is false)"));
}

TEST_F(ConvertErrors, ExtraTensors_AreNamed) {
  EXPECT_THAT(
      ErrorOfEdit([](TinyTensors& t) {
        t["model.layers.0.self_attn.q_proj.bias"] = {"F32", {32}, std::vector<uint8_t>(128)};
      }),
      HasSubstr("does not account for: model.layers.0.self_attn.q_proj.bias"));
}

// Layers behind the last are left out, as many as the config says, and with a warning.
TEST_F(ConvertErrors, FurtherLayers_AreLeftOutByKey) {
  const auto add_layers = [](TinyTensors& t) {
    for (const char* name : {"model.layers.2.eh_proj.weight", "model.layers.20.enorm.weight"}) {
      t[name] = {"F32", {32}, std::vector<uint8_t>(128)};
    }
  };
  EXPECT_THAT(ErrorOfEdit(add_layers),
              HasSubstr("does not account for: model.layers.2.eh_proj.weight, "
                        "model.layers.20.enorm.weight"));
  TinyCheckpoint tiny;
  tiny.config = {{"num_nextn_predict_layers", 1}};
  EXPECT_THAT(ErrorOfEdit(add_layers, DType::kInt8, tiny),
              HasSubstr("does not account for: model.layers.20.enorm.weight"));
  WriteCheckpoint(tiny, [&](TinyTensors& t) {
    add_layers(t);
    t.erase("model.layers.20.enorm.weight");
  });
  Run(Options(DType::kInt8));
  EXPECT_THAT(warnings_, Contains("left out: model.layers.2.* (1 tensor), a layer that "
                                  "predicts further tokens"));
}

TEST_F(ConvertErrors, StoredRopeTable_IsNoExtra) {
  WriteCheckpoint({}, [](TinyTensors& t) {
    t["model.layers.0.self_attn.rotary_emb.inv_freq"] = {"F32", {4}, std::vector<uint8_t>(16)};
  });
  EXPECT_NO_THROW(Run(Options(DType::kInt8)));
}

TEST_F(ConvertErrors, Misshapen_ExpectedAndFound) {
  EXPECT_THAT(ErrorOfEdit([](TinyTensors& t) {
                t["model.layers.0.mlp.gate_proj.weight"].shape = {32, 48};
              }),
              AllOf(HasSubstr("model.layers.0.mlp.gate_proj.weight"),
                    HasSubstr("expected shape [48, 32], found [32, 48]")));
}

TEST_F(ConvertErrors, Mistyped_ExpectedAndFound) {
  EXPECT_THAT(ErrorOfEdit([](TinyTensors& t) { t["model.norm.weight"].dtype = "I32"; }),
              AllOf(HasSubstr("model.norm.weight"),
                    HasSubstr("expected type F64, F32, F16 or BF16, found I32")));
  EXPECT_THAT(ErrorOfEdit([](TinyTensors& t) { t["model.norm.weight"].dtype = "Q17"; }),
              HasSubstr("found Q17"));
}

TEST_F(ConvertErrors, NaNAndInfinity_NamedWithIndex) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4}) {
    EXPECT_THAT(ErrorOfEdit(
                    [&](TinyTensors& t) {
                      SetFloat(&t["model.layers.1.self_attn.k_proj.weight"], 3 * 32 + 7, nan);
                    },
                    dtype),
                AllOf(HasSubstr("model.layers.1.self_attn.k_proj.weight"),
                      HasSubstr("the value at [3, 7] is NaN")))
        << DTypeName(dtype);
  }
  EXPECT_THAT(
      ErrorOfEdit([&](TinyTensors& t) { SetFloat(&t["model.norm.weight"], 31, -infinity); }),
      AllOf(HasSubstr("model.norm.weight"), HasSubstr("[31] is infinite")));
  TinyCheckpoint tiny;
  tiny.qkv_bias = true;
  tiny.architecture = "Qwen2ForCausalLM";
  EXPECT_THAT(
      ErrorOfEdit(
          [&](TinyTensors& t) { SetFloat(&t["model.layers.0.self_attn.v_proj.bias"], 2, nan); },
          DType::kInt8, tiny),
      AllOf(HasSubstr("v_proj.bias"), HasSubstr("[2] is NaN")));
}

TEST_F(ConvertErrors, TooLargeForF16_NamedWithIndex) {
  EXPECT_THAT(ErrorOfEdit(
                  [&](TinyTensors& t) {
                    SetFloat(&t["model.layers.0.mlp.up_proj.weight"], 5 * 32 + 1, 1e6f);
                  },
                  DType::kF16),
              AllOf(HasSubstr("up_proj.weight"), HasSubstr("[5, 1] is too large for f16")));
}

TEST_F(ConvertErrors, BadConfigJson_GivesPosition) {
  WriteCheckpoint({});
  test::WriteFile(folder_ / "model/config.json", std::string("{\n \"a\": 1,\n \"b\" 2\n}"));
  EXPECT_THAT(ErrorOfRun(Options(DType::kInt8)), HasSubstr("config.json:3:6: not valid JSON"));
}

TEST_F(ConvertErrors, NoFolderOrConfig_NamesIt) {
  EXPECT_THAT(ErrorOfRun(Options(DType::kInt8)), HasSubstr("model: neither a folder"));
  WriteCheckpoint({});
  std::filesystem::remove(folder_ / "model/config.json");
  EXPECT_THAT(ErrorOfRun(Options(DType::kInt8)),
              HasSubstr("config.json: cannot open: No such file"));
}

TEST_F(ConvertErrors, TokenizerOnlyWithoutTokenizer_IsAnError) {
  WriteCheckpoint({});
  ConvertOptions options = Options(DType::kInt8);
  options.tokenizer_only = true;
  EXPECT_THAT(ErrorOfRun(options), HasSubstr("neither a tokenizer.json"));
}

TEST_F(ConvertErrors, TokenizerThatCannotBeRead_NamesIt) {
  WriteCheckpoint({});
  test::WriteFile(folder_ / "model/tokenizer.json", std::string(R"({"model": {"type": "Magic"}})"));
  EXPECT_THAT(ErrorOfRun(Options(DType::kInt8)), HasSubstr("tokenizer.json"));
  EXPECT_THAT(OutputFiles(), IsEmpty());
}

TEST_F(ConvertErrors, OutputFolderMissing_NamesIt) {
  WriteCheckpoint({});
  ConvertOptions options = Options(DType::kInt8);
  options.output = folder_ / "nowhere/m.arn";
  EXPECT_THAT(ErrorOfRun(options), AllOf(HasSubstr("nowhere/m.arn"), HasSubstr("cannot create")));
}

// Sets a file size limit, so that the kernel fails writes as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit = {bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_;
  void (*old_handler_)(int);
};

TEST_F(ConvertErrors, DiskFull_SaysSoAndLeavesNothing) {
  WriteCheckpoint({});
  Run(Options(DType::kF32));
  const uint64_t whole = std::filesystem::file_size(folder_ / "out/model.arn");
  std::filesystem::remove(folder_ / "out/model.arn");
  // In each stage: the header page, the segments, the index.
  for (const uint64_t limit : {uint64_t{100}, uint64_t{20000}, whole - 100}) {
    const FileSizeLimit limited(limit);
    EXPECT_THAT(ErrorOfRun(Options(DType::kF32)),
                AllOf(HasSubstr("model.arn"), HasSubstr("disk full")))
        << limit;
    EXPECT_THAT(OutputFiles(), IsEmpty()) << limit;
  }
}

TEST_F(ConvertErrors, FailureWithAnOlderBundleThere_KeepsIt) {
  WriteCheckpoint({});
  test::WriteFile(folder_ / "out/model.arn", "older");
  WriteCheckpoint({}, [&](TinyTensors& t) {
    SetFloat(&t["model.norm.weight"], 0, std::numeric_limits<float>::quiet_NaN());
  });
  ErrorOfRun(Options(DType::kInt8));
  EXPECT_THAT(OutputFiles(), ElementsAre("model.arn"));
  const std::vector<uint8_t> bytes = test::ReadFile(folder_ / "out/model.arn");
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "older");
}

TEST_F(ConvertErrors, ProgressThatThrows_EndsAndLeavesNothing) {
  WriteCheckpoint({});
  ConvertEvents events;
  uint32_t calls = 0;
  events.on_progress = [&](const std::string&, uint64_t done, uint64_t total) {
    EXPECT_LE(done, total);
    if (++calls == 3) Fail("interrupted");
  };
  EXPECT_EQ(test::ErrorOf([&] { Convert(Options(DType::kInt8), events); }), "interrupted");
  EXPECT_THAT(OutputFiles(), IsEmpty());
}

TEST_F(ConvertErrors, UntilTheEnd_TheNameIsNotThere) {
  WriteCheckpoint({});
  ConvertEvents events;
  uint64_t last = 0;
  events.on_progress = [&](const std::string&, uint64_t done, uint64_t total) {
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out/model.arn"));
    last = total - done;
  };
  Convert(Options(DType::kInt8), events);
  EXPECT_EQ(last, 0u);
  EXPECT_THAT(OutputFiles(), ElementsAre("model.arn"));
}

// ---- the frame of the file ----------------------------------------------------------------------

TEST_F(ConvertErrors, Frame_IsAsDocumented) {
  std::filesystem::create_directories(folder_ / "out");
  BundleWriter writer(folder_ / "out/frame.arn");
  const std::vector<uint8_t> small(100, 1), large(65536, 2);
  const fbs::Segment a = writer.WriteSegment(small.data(), small.size());
  const fbs::Segment b = writer.WriteSegment(small.data(), 7);
  const fbs::Segment c = writer.WriteSegment(large.data(), large.size());
  const fbs::Segment none = writer.WriteSegment(nullptr, 0);
  flatbuffers::FlatBufferBuilder builder;
  fbs::FinishBundleBuffer(builder, fbs::CreateBundle(builder));
  writer.Close(builder);
  // After Reopen() the next segment follows the last one, at the requested alignment.
  const std::vector<uint8_t> closed = test::ReadFile(writer.path());
  writer.Reopen();
  EXPECT_EQ(std::filesystem::file_size(writer.path()), 16384u + 16384u + 65536u);
  writer.BeginSegment(small.size(), 16384);
  writer.Append(small.data(), small.size());
  EXPECT_EQ(writer.EndSegment().offset(), 16384u + 65536u);
  writer.Reopen();
  writer.Close(builder);
  EXPECT_EQ(closed, test::ReadFile(writer.path()));
  writer.Commit();

  EXPECT_EQ(a.offset(), 0u);
  EXPECT_EQ(b.offset(), 128u);
  EXPECT_EQ(c.offset(), 16384u);
  EXPECT_EQ(none.bytes(), 0u);
  const std::vector<uint8_t> file = test::ReadFile(folder_ / "out/frame.arn");
  uint64_t header[8];
  std::memcpy(header, file.data(), 64);
  EXPECT_EQ(std::memcmp(file.data(), "ARENITE\0", 8), 0);
  EXPECT_EQ(header[1], 1u | uint64_t{64} << 32);
  const uint64_t index_offset = header[2], index_bytes = header[3];
  EXPECT_EQ(index_offset + index_bytes, file.size());
  EXPECT_EQ(index_offset % 16, 0u);
  EXPECT_EQ(header[4], Xxh64(file.data() + index_offset, index_bytes));
  EXPECT_EQ(header[5], 16384u);
  EXPECT_EQ(header[6], index_offset - 16384);
  EXPECT_GE(header[6], c.offset() + c.bytes() + 128);
  EXPECT_EQ(header[7], Xxh64(file.data(), 56));
  for (size_t i = 64; i < 16384; ++i) ASSERT_EQ(file[i], 0);
  for (size_t i = 16384 + 107 + 128; i < 32768; ++i) ASSERT_EQ(file[i], 0);
  for (size_t i = 32768 + 65536; i < index_offset; ++i) ASSERT_EQ(file[i], 0);
  EXPECT_EQ(a.hash(), Xxh64(small.data(), 100));
  EXPECT_EQ(c.hash(), Xxh64(file.data() + 32768, 65536));
}

TEST_F(ConvertErrors, OutFileWithoutCommit_LeavesNothing) {
  std::filesystem::create_directories(folder_ / "out");
  {
    OutFile file(folder_ / "out/x");
    file.Append("abc", 3);
    EXPECT_EQ(OutputFiles().size(), 1u);
    EXPECT_THAT(OutputFiles()[0], HasSubstr("x.tmp"));
  }
  EXPECT_THAT(OutputFiles(), IsEmpty());
}

}  // namespace
}  // namespace arn::convert
