#include "tests/support/counting_device.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernels/vulkan/device/vk_api.h"
#include "kernels/vulkan/lower/dispatch.h"

namespace arn::test {
namespace {

using vulkan::kBindings;
using vulkan::kShaderCount;

constexpr uint32_t kCounters = sizeof(ShaderCounts) / sizeof(uint32_t);
constexpr uint32_t kCounterBytes = kShaderCount * sizeof(ShaderCounts);

// The part of SPIR-V that the shaders use: opcodes of its specification, version 1.3.
enum Op : uint32_t {
  kExtInst = 12,
  kTypeInt = 21,
  kTypeFloat = 22,
  kTypeVector = 23,
  kTypeRuntimeArray = 29,
  kTypeStruct = 30,
  kTypePointer = 32,
  kConstant = 43,
  kFunction = 54,
  kVariable = 59,
  kLoad = 61,
  kStore = 62,
  kAccessChain = 65,
  kInBoundsAccessChain = 66,
  kDecorate = 71,
  kMemberDecorate = 72,
  kDot = 148,
  kAtomicIAdd = 234,
  kSDot = 4450,
};
constexpr uint32_t kStorageBuffer = 12, kFma = 50, kHeaderWords = 5, kBoundAt = 3;
constexpr uint32_t kHalfPair = 4;  // bytes of two f16; other vectors are of four f32
constexpr uint32_t kBlock = 2, kArrayStride = 6, kBinding = 33, kDescriptorSet = 34, kOffset = 35;

// Rewrites one module.
class Instrumenter {
 public:
  Instrumenter(const uint32_t* words, size_t n, uint32_t first_counter)
      : in_(words, words + n), first_counter_(first_counter), bound_(in_[kBoundAt]) {}

  std::vector<uint32_t> Run() {
    Survey();
    out_.assign(in_.begin(), in_.begin() + kHeaderWords);
    bool has_decorations = false, has_globals = false;
    for (size_t at = kHeaderWords; at < in_.size(); at += Length(at)) {
      const uint32_t op = OpAt(at);
      if (!has_decorations && IsTypeOrGlobal(op)) {
        AddDecorations();
        has_decorations = true;
      }
      if (!has_globals && op == kFunction) {
        AddGlobals();
        has_globals = true;
      }
      out_.insert(out_.end(), in_.begin() + static_cast<ptrdiff_t>(at),
                  in_.begin() + static_cast<ptrdiff_t>(at + Length(at)));
      if (has_globals) Count(at);
    }
    out_[kBoundAt] = bound_;
    return out_;
  }

 private:
  uint32_t OpAt(size_t at) const { return in_[at] & 0xffff; }
  size_t Length(size_t at) const { return in_[at] >> 16; }
  static bool IsTypeOrGlobal(uint32_t op) { return op >= 19 && op <= kVariable && op != 20; }
  void Emit(uint32_t op, const std::vector<uint32_t>& operands) {
    out_.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | op);
    out_.insert(out_.end(), operands.begin(), operands.end());
  }

  // Finds types, variables and bindings.
  void Survey() {
    for (size_t at = kHeaderWords; at < in_.size(); at += Length(at)) {
      const uint32_t* w = &in_[at];
      switch (OpAt(at)) {
        case kTypeInt:
          bytes_[w[1]] = w[2] / 8;
          if (w[2] == 32 && w[3] == 0) uint_ = w[1];
          break;
        case kTypeFloat: bytes_[w[1]] = w[2] / 8; break;
        case kTypeVector:
          bytes_[w[1]] = bytes_[w[2]] * w[3];
          is_vector_[w[1]] = true;
          break;
        case kTypePointer:
          pointee_[w[1]] = w[3];
          if (w[2] == kStorageBuffer) is_buffer_pointer_[w[1]] = true;
          break;
        case kDecorate:
          if (w[2] == kBinding) binding_[w[1]] = w[3];
          break;
        case kAccessChain:
        case kInBoundsAccessChain:
          if (is_buffer_pointer_[w[1]] && binding_[w[3]] != 0) {
            counted_bytes_[w[2]] = bytes_[pointee_[w[1]]];
          }
          break;
        default: break;
      }
    }
    if (uint_ == 0) std::abort();  // every shader has indices
    for (uint32_t* id :
         {&array_, &structure_, &pointer_, &word_pointer_, &variable_, &zero_, &scope_}) {
      *id = bound_++;
    }
  }

  void AddDecorations() {
    Emit(kDecorate, {array_, kArrayStride, 4});
    Emit(kMemberDecorate, {structure_, 0, kOffset, 0});
    Emit(kDecorate, {structure_, kBlock});
    Emit(kDecorate, {variable_, kDescriptorSet, 0});
    Emit(kDecorate, {variable_, kBinding, kBindings});
  }

  void AddGlobals() {
    Emit(kTypeRuntimeArray, {array_, uint_});
    Emit(kTypeStruct, {structure_, array_});
    Emit(kTypePointer, {pointer_, kStorageBuffer, structure_});
    Emit(kTypePointer, {word_pointer_, kStorageBuffer, uint_});
    Emit(kVariable, {pointer_, variable_, kStorageBuffer});
    Emit(kConstant, {uint_, zero_, 0});
    Emit(kConstant, {uint_, scope_, 1});  // the device
    for (uint32_t i = 0; i < kCounters; ++i) {
      counters_[i] = bound_++;
      Emit(kConstant, {uint_, counters_[i], first_counter_ + i});
    }
    for (const uint32_t amount : {1u, 2u, 4u, 8u, 16u}) {
      amounts_[amount] = bound_++;
      Emit(kConstant, {uint_, amounts_[amount], amount});
    }
  }

  void Count(size_t at) {
    const uint32_t* w = &in_[at];
    switch (OpAt(at)) {
      case kLoad:
        if (counted_bytes_.contains(w[3])) Add(0, counted_bytes_[w[3]]);
        break;
      case kStore:
        if (counted_bytes_.contains(w[1])) Add(1, counted_bytes_[w[1]]);
        break;
      case kDot: Add(2, 4); break;
      case kExtInst:
        if (w[4] != kFma || !is_vector_[w[1]]) break;
        if (bytes_[w[1]] == kHalfPair) {
          Add(5, 2);
        } else {
          Add(3, 4);
        }
        break;
      case kSDot: Add(4, 4); break;
      default: break;
    }
  }

  void Add(uint32_t counter, uint32_t amount) {
    const uint32_t chain = bound_++, sum = bound_++;
    Emit(kAccessChain, {word_pointer_, chain, variable_, zero_, counters_[counter]});
    Emit(kAtomicIAdd, {uint_, sum, chain, scope_, zero_, amounts_.at(amount)});
  }

  const std::vector<uint32_t> in_;
  const uint32_t first_counter_;
  uint32_t bound_;
  std::vector<uint32_t> out_;
  std::map<uint32_t, uint32_t> bytes_, pointee_, binding_, counted_bytes_, amounts_;
  std::map<uint32_t, bool> is_vector_, is_buffer_pointer_;
  uint32_t uint_ = 0, array_ = 0, structure_ = 0, pointer_ = 0, word_pointer_ = 0, variable_ = 0;
  uint32_t zero_ = 0, scope_ = 0;
  uint32_t counters_[kCounters] = {};
};

// The driver's functions, and the memory of the counters.
struct Driver {
  PFN_vkGetInstanceProcAddr instance_proc = nullptr;
  PFN_vkGetDeviceProcAddr device_proc = nullptr;
  VkDevice counted = VK_NULL_HANDLE;  // the device that has them
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  uint32_t* counters = nullptr;

  template <typename Function>
  Function Get(VkDevice device, const char* name) const {
    return reinterpret_cast<Function>(device_proc(device, name));
  }
};
Driver g_driver;

// On a software device all memory is the host's: the first type.
void CreateCounters(VkDevice device) {
  g_driver.counted = device;
  VkBufferCreateInfo buffer = {};
  buffer.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer.size = kCounterBytes;
  buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  g_driver.Get<PFN_vkCreateBuffer>(device, "vkCreateBuffer")(device, &buffer, nullptr,
                                                             &g_driver.buffer);
  VkMemoryRequirements needs = {};
  g_driver.Get<PFN_vkGetBufferMemoryRequirements>(device, "vkGetBufferMemoryRequirements")(
      device, g_driver.buffer, &needs);
  VkMemoryAllocateInfo memory = {};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory.allocationSize = needs.size;
  g_driver.Get<PFN_vkAllocateMemory>(device, "vkAllocateMemory")(device, &memory, nullptr,
                                                                 &g_driver.memory);
  g_driver.Get<PFN_vkBindBufferMemory>(device, "vkBindBufferMemory")(device, g_driver.buffer,
                                                                     g_driver.memory, 0);
  void* mapped = nullptr;
  g_driver.Get<PFN_vkMapMemory>(device, "vkMapMemory")(device, g_driver.memory, 0, kCounterBytes, 0,
                                                       &mapped);
  g_driver.counters = static_cast<uint32_t*>(mapped);
  std::memset(g_driver.counters, 0, kCounterBytes);
}

VKAPI_ATTR VkResult VKAPI_CALL CreateLayout(VkDevice device,
                                            const VkDescriptorSetLayoutCreateInfo* info,
                                            const VkAllocationCallbacks* callbacks,
                                            VkDescriptorSetLayout* out) {
  std::vector<VkDescriptorSetLayoutBinding> bindings(info->pBindings,
                                                     info->pBindings + info->bindingCount);
  bindings.push_back(bindings.back());
  bindings.back().binding = kBindings;
  VkDescriptorSetLayoutCreateInfo more = *info;
  more.bindingCount = static_cast<uint32_t>(bindings.size());
  more.pBindings = bindings.data();
  CreateCounters(device);
  return g_driver.Get<PFN_vkCreateDescriptorSetLayout>(device, "vkCreateDescriptorSetLayout")(
      device, &more, callbacks, out);
}

VKAPI_ATTR VkResult VKAPI_CALL CreatePool(VkDevice device, const VkDescriptorPoolCreateInfo* info,
                                          const VkAllocationCallbacks* callbacks,
                                          VkDescriptorPool* out) {
  VkDescriptorPoolSize size = *info->pPoolSizes;
  size.descriptorCount += info->maxSets;
  VkDescriptorPoolCreateInfo more = *info;
  more.pPoolSizes = &size;
  return g_driver.Get<PFN_vkCreateDescriptorPool>(device, "vkCreateDescriptorPool")(device, &more,
                                                                                    callbacks, out);
}

VKAPI_ATTR void VKAPI_CALL UpdateSets(VkDevice device, uint32_t n,
                                      const VkWriteDescriptorSet* writes, uint32_t n_copies,
                                      const VkCopyDescriptorSet* copies) {
  const auto update = g_driver.Get<PFN_vkUpdateDescriptorSets>(device, "vkUpdateDescriptorSets");
  update(device, n, writes, n_copies, copies);
  const VkDescriptorBufferInfo counters = {g_driver.buffer, 0, kCounterBytes};
  for (uint32_t i = 0; i < n; ++i) {
    VkWriteDescriptorSet write = writes[i];
    write.dstBinding = kBindings;
    write.descriptorCount = 1;
    write.pBufferInfo = &counters;
    update(device, 1, &write, 0, nullptr);
  }
}

// Returns the shader that the library has the code of.
uint32_t ShaderOf(const uint32_t* code) {
  for (uint32_t s = 0; s < kShaderCount; ++s) {
    for (const bool uses_subgroups : {false, true}) {
      for (const bool uses_dot : {false, true}) {
        const auto shader = static_cast<vulkan::Shader>(s);
        if (vulkan::SpirvOf(shader, {uses_subgroups, uses_dot}).data() == code) return s;
      }
    }
  }
  std::abort();
}

VKAPI_ATTR VkResult VKAPI_CALL CreateModule(VkDevice device, const VkShaderModuleCreateInfo* info,
                                            const VkAllocationCallbacks* callbacks,
                                            VkShaderModule* out) {
  const uint32_t shader = ShaderOf(info->pCode);
  const std::vector<uint32_t> words =
      Instrumenter(info->pCode, info->codeSize / sizeof(uint32_t), shader * kCounters).Run();
  VkShaderModuleCreateInfo counted = *info;
  counted.pCode = words.data();
  counted.codeSize = words.size() * sizeof(uint32_t);
  return g_driver.Get<PFN_vkCreateShaderModule>(device, "vkCreateShaderModule")(device, &counted,
                                                                                callbacks, out);
}

VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice device, const VkAllocationCallbacks* callbacks) {
  if (device == g_driver.counted) {
    g_driver.Get<PFN_vkDestroyBuffer>(device, "vkDestroyBuffer")(device, g_driver.buffer, nullptr);
    g_driver.Get<PFN_vkFreeMemory>(device, "vkFreeMemory")(device, g_driver.memory, nullptr);
    g_driver.counted = VK_NULL_HANDLE;
  }
  g_driver.Get<PFN_vkDestroyDevice>(device, "vkDestroyDevice")(device, callbacks);
}

template <typename Function>
PFN_vkVoidFunction Erased(Function* function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL DeviceProc(VkDevice device, const char* name) {
  const std::string wanted = name;
  if (wanted == "vkCreateDescriptorSetLayout") return Erased(CreateLayout);
  if (wanted == "vkCreateDescriptorPool") return Erased(CreatePool);
  if (wanted == "vkUpdateDescriptorSets") return Erased(UpdateSets);
  if (wanted == "vkDestroyDevice") return Erased(DestroyDevice);
  if (wanted == "vkCreateShaderModule") return Erased(CreateModule);
  return g_driver.device_proc(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL InstanceProc(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = g_driver.instance_proc(instance, name);
  if (std::string(name) != "vkGetDeviceProcAddr") return found;
  g_driver.device_proc = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
  return Erased(DeviceProc);
}

bool g_counts = false;  // devices that are opened now

}  // namespace

CountingDevice::CountingDevice() { g_counts = true; }

CountingDevice::~CountingDevice() {
  g_counts = false;
  g_driver = Driver();
}

void CountingDevice::Reset() { std::memset(g_driver.counters, 0, kCounterBytes); }

ShaderCounts CountingDevice::Of(vulkan::Shader shader) const {
  const uint32_t* c = g_driver.counters + static_cast<uint32_t>(shader) * kCounters;
  return {c[0], c[1], c[2], c[3], c[4], c[5]};
}

// Stands between the backend and arn::FindSymbol() (the linker's --wrap), which finds the loader's
// entry.
extern "C" void* __real__ZN3arn10FindSymbolEPvPKc(void* library, const char* name);
extern "C" void* __wrap__ZN3arn10FindSymbolEPvPKc(void* library, const char* name) {
  void* found = __real__ZN3arn10FindSymbolEPvPKc(library, name);
  if (!g_counts || found == nullptr || std::strcmp(name, "vkGetInstanceProcAddr") != 0) {
    return found;
  }
  std::memcpy(&g_driver.instance_proc, &found, sizeof found);
  return reinterpret_cast<void*>(InstanceProc);
}

}  // namespace arn::test
