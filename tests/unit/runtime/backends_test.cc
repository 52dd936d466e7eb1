#include "runtime/backends.h"

#include <gtest/gtest.h>

#include <string>

namespace arn {
namespace {

constexpr BackendId kIds[] = {BackendId::kCpu, BackendId::kReference, BackendId::kVulkan,
                              BackendId::kVulkanCpu};

TEST(BackendsTest, IdOf_InvertsFindBackend) {
  for (const BackendId id : kIds) {
    const Backend* backend = FindBackend(id);
    if (backend == nullptr) continue;  // a build without Vulkan
    EXPECT_EQ(id, IdOf(*backend)) << backend->name;
  }
}

TEST(BackendsTest, EveryTableOfABackend_IsComplete) {
  for (const BackendId id : kIds) {
    const Backend* b = FindBackend(id);
    if (b == nullptr) continue;
    SCOPED_TRACE(b->name);
    EXPECT_TRUE(b->plan != nullptr && b->load != nullptr && b->run != nullptr);
    EXPECT_TRUE(b->kv_read != nullptr && b->kv_write != nullptr && b->unload != nullptr);
    if (b->host_kv != nullptr) {
      EXPECT_NE(nullptr, b->host_kv->place);
    }
    if (b->threads != nullptr) {
      EXPECT_NE(nullptr, b->threads->read_cpus);
    }
    if (b->device != nullptr) {
      EXPECT_TRUE(b->device->name != nullptr && b->device->kernel_names != nullptr);
      EXPECT_TRUE(b->device->trust != nullptr && b->device->kv_mapping != nullptr);
      EXPECT_NE(nullptr, b->device->imported_bytes);
    }
    if (b->logits != nullptr) {
      EXPECT_NE(nullptr, b->logits->read);
    }
    if (b->tokens != nullptr) {
      EXPECT_NE(nullptr, b->tokens->decode);
      EXPECT_NE(nullptr, b->logits) << "tokens are chosen from logits that stay";
    }
    if (b->partner != nullptr) {
      EXPECT_NE(nullptr, b->partner->join);
    }
    EXPECT_NE(b->host_kv == nullptr, b->device == nullptr) << "pages are on the host or a device";
    EXPECT_NE(nullptr, FindLogitsOps(*b));
  }
}

// A fallback takes the pages to the host, and needs no device.
TEST(BackendsTest, Fallbacks_HaveTheirPagesOnTheHost) {
  for (const BackendId id : {BackendId::kAuto, BackendId::kVulkanCpu}) {
    const BackendTraits traits = FindTraits(id);
    ASSERT_NE(nullptr, traits.fallback);
    EXPECT_NE(nullptr, traits.fallback->host_kv);
    EXPECT_EQ(nullptr, traits.fallback->device);
    EXPECT_NE(std::string(), traits.if_missing);
  }
  EXPECT_EQ(FindBackend(BackendId::kVulkan), FindTraits(BackendId::kAuto).backend);
}

TEST(BackendsTest, UnknownNumber_HasNoBackend) {
  const BackendTraits traits = FindTraits(static_cast<BackendId>(99));
  EXPECT_EQ(nullptr, traits.backend);
  EXPECT_EQ(nullptr, traits.fallback);
}

}  // namespace
}  // namespace arn
