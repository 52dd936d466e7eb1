// What checking an index may cost.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/bundle/bundle.h"
#include "tests/support/tiny_bundle.h"

namespace arn::test {
namespace {

// One table, many times: what the verifier costs is bounded whatever the file's size.
TEST(Bundle_Index, OfTooManyTables_IsRefused) {
  constexpr uint32_t kTables = 4u << 20;  // and two above them
  flatbuffers::FlatBufferBuilder fbb(kTables * 5);
  const auto same = fbs::ChatVariableBuilder(fbb).Finish();
  uint32_t* places = nullptr;
  const auto variables = fbb.CreateUninitializedVector(kTables, &places);
  const uint8_t* const table = fbb.GetCurrentBufferPointer() + fbb.GetSize() - same.o;
  const auto first = static_cast<uint32_t>(table - reinterpret_cast<const uint8_t*>(places));
  for (uint32_t i = 0; i < kTables; ++i) places[i] = first - i * 4;
  const auto chat = fbs::CreateChat(fbb, 0, variables.o);
  fbs::BundleBuilder builder(fbb);
  builder.add_chat(chat);
  fbs::FinishBundleBuffer(fbb, builder.Finish());

  const BundleBytes whole = MakeTinyBundle(TinyBundle());
  BundleHeader header;
  std::memcpy(&header, whole.data(), sizeof header);
  header.index_bytes = fbb.GetSize();
  std::vector<uint8_t> file(whole.data(), whole.data() + header.index_offset);
  std::memcpy(file.data(), &header, sizeof header);
  file.insert(file.end(), fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize());
  RepairHashes(file.data(), file.size());
  const BundleBytes bytes(file);
  Bundle bundle;
  Diag diag;
  EXPECT_EQ(
      Status::kBadBundle,
      OpenBundle({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, &bundle, &diag));
  EXPECT_STREQ("the index is not a valid FlatBuffer of a bundle", diag.text());
}

}  // namespace
}  // namespace arn::test
