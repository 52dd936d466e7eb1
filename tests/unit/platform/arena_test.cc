#include "platform/base/arena.h"

#include <gtest/gtest.h>

namespace arn {
namespace {

struct Object {
  uint32_t a = 7;
  double b = 2.0;
};

TEST(Arena_Allocate, UntilFull_ThenOutOfMemory) {
  alignas(64) std::byte memory[256];
  Arena arena(memory);
  ASSERT_TRUE(arena.Allocate(200, 1).ok());
  EXPECT_EQ(Status::kOutOfMemory, arena.Allocate(57, 1).status());
  EXPECT_TRUE(arena.Allocate(56, 1).ok());
  EXPECT_EQ(Status::kOutOfMemory, arena.Allocate(1, 1).status());
  EXPECT_EQ(256u, arena.used_bytes());
}

TEST(Arena_Allocate, MisalignedMemory_AlignsTheAddress) {
  alignas(64) std::byte memory[256];
  Arena arena(Span<std::byte>(memory + 1, 255));
  Result<void*> p = arena.Allocate(8, 64);
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(p.value()) % 64);
}

TEST(Arena_Allocate, HugeSizes_DoNotWrap) {
  alignas(64) std::byte memory[64];
  Arena arena(memory);
  EXPECT_EQ(Status::kOutOfMemory, arena.Allocate(UINT64_MAX, 64).status());
  EXPECT_EQ(Status::kOutOfMemory, arena.AllocateArray<Object>(UINT64_MAX / 8).status());
}

TEST(Arena_AllocateArray, Objects_AreInitialised) {
  alignas(64) std::byte memory[256];
  for (std::byte& b : memory) b = std::byte{0xff};
  Arena arena(memory);
  Result<Span<Object>> objects = arena.AllocateArray<Object>(3);
  ASSERT_TRUE(objects.ok());
  for (const Object& o : objects.value()) {
    EXPECT_EQ(7u, o.a);
    EXPECT_EQ(2.0, o.b);
  }
}

TEST(Arena_EndAllocation, LaterAllocation_IsBadState) {
  alignas(64) std::byte memory[64];
  Arena arena(memory);
  arena.EndAllocation();
  EXPECT_EQ(Status::kBadState, arena.Allocate(1, 1).status());
}

TEST(Arena_Rewind, GivesBack) {
  alignas(64) std::byte memory[64];
  Arena arena(memory);
  const uint64_t mark = arena.mark();
  ASSERT_TRUE(arena.Allocate(64, 1).ok());
  arena.Rewind(mark);
  EXPECT_TRUE(arena.Allocate(64, 1).ok());
}

}  // namespace
}  // namespace arn
