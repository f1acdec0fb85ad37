// A CUDA runtime without a GPU: libcudart.so.13 and the driver functions of virtual memory.
//
// It lets PyTorch's CUDA caching allocator (libc10_cuda.so) run on any machine. Device memory is
// only counted: an allocation is an address that nothing ever reads or writes. README in record.py.
//
// Rules:
// * The device has the capacity that fake_cuda_configure sets; cudaMalloc and cuMemCreate fail with
//   out of memory when the sum of what is held would exceed it. Sizes count as they are.
// * cudaMalloc and cuMemAddressReserve place ranges at multiples of 2 MiB, each in an area of its
//   own, by one of three policies: 0 = the lowest gap that is large enough, 1 = always above
//   everything placed before, 2 = always below everything placed before.
// * The work of a stream that precedes an event is done when fake_cuda_complete says so, or when
//   the stream, the event or the device is synchronised. cudaFree waits for nothing.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "fake_cuda.h"

namespace {

constexpr uint64_t kGrain = uint64_t(2) << 20;
constexpr uint64_t kMallocLow = 0x7f0000000000, kMallocTop = 0x7f8000000000;
constexpr uint64_t kReserveLow = 0x600000000000, kReserveTop = 0x608000000000;

struct Area {
  uint64_t low, top;
  uint64_t rising, falling;
  std::map<uint64_t, uint64_t> taken;  // address to size
  Area(uint64_t l, uint64_t t) : low(l), top(t), rising(l), falling(t) {}

  uint64_t place(uint64_t size, int policy) {
    const uint64_t room = (size + kGrain - 1) / kGrain * kGrain;
    uint64_t at;
    if (policy == 1) {
      at = rising;
      rising += room;
    } else if (policy == 2) {
      falling -= room;
      at = falling;
    } else {
      at = low;
      for (const auto& [address, held] : taken) {
        if (address - at >= room) break;
        at = address + (held + kGrain - 1) / kGrain * kGrain;
      }
    }
    taken[at] = size;
    return at;
  }
};

struct Stream {
  uint64_t issued = 0;  // events recorded so far
  uint64_t done = 0;    // events completed so far
  unsigned long long capture = 0;
};

struct Event {
  uint64_t stream = 0;
  uint64_t serial = 0;
};

uint64_t capacity = uint64_t(1) << 40;
int policy = 0;
FakeCounts counts{};
Area mallocs(kMallocLow, kMallocTop), reserves(kReserveLow, kReserveTop);
std::map<uint64_t, Stream> streams;
std::map<uint64_t, uint64_t> handles;  // physical handle to size
uint64_t next_handle = 1, next_stream = 0x510000000000;
cudaError_t last_error = cudaSuccess;

cudaError_t fail(cudaError_t error) {
  last_error = error;
  return error;
}

bool take(uint64_t size) {
  if (counts.used + size > capacity) return false;
  counts.used += size;
  if (counts.used > counts.peak) counts.peak = counts.used;
  return true;
}

void complete_all() {
  for (auto& entry : streams) entry.second.done = entry.second.issued;
}

uint64_t key(cudaStream_t stream) { return reinterpret_cast<uint64_t>(stream); }

bool is_done(const Event* event) {
  return event->serial <= streams[event->stream].done;
}

// The driver API, handed out by cudaGetDriverEntryPointByVersion.

CUresult device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult device_get_attribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;  // in particular no fabric handles
  return CUDA_SUCCESS;
}

CUresult address_reserve(CUdeviceptr* at, size_t size, size_t, CUdeviceptr, unsigned long long) {
  counts.reserves++;
  *at = reserves.place(size, policy);
  return CUDA_SUCCESS;
}

CUresult address_free(CUdeviceptr at, size_t) {
  return reserves.taken.erase(at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult mem_create(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp*,
                    unsigned long long) {
  counts.creates++;
  if (!take(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  handles[next_handle] = size;
  *handle = next_handle++;
  return CUDA_SUCCESS;
}

CUresult mem_release(CUmemGenericAllocationHandle handle) {
  auto found = handles.find(handle);
  if (found == handles.end()) return CUDA_ERROR_INVALID_VALUE;
  counts.used -= found->second;
  counts.releases++;
  handles.erase(found);
  return CUDA_SUCCESS;
}

CUresult mem_map(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) {
  return CUDA_SUCCESS;
}

CUresult mem_unmap(CUdeviceptr, size_t) { return CUDA_SUCCESS; }

CUresult mem_set_access(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return CUDA_SUCCESS;
}

CUresult granularity(size_t* size, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *size = kGrain;
  return CUDA_SUCCESS;
}

CUresult error_string(CUresult, const char** text) {
  *text = "error of the fake driver";
  return CUDA_SUCCESS;
}

CUresult unsupported() { return CUDA_ERROR_NOT_SUPPORTED; }

const std::map<std::string, void*>& entry_points() {
  static const std::map<std::string, void*> known = {
      {"cuDeviceGet", (void*)device_get},
      {"cuDeviceGetAttribute", (void*)device_get_attribute},
      {"cuMemAddressReserve", (void*)address_reserve},
      {"cuMemAddressFree", (void*)address_free},
      {"cuMemCreate", (void*)mem_create},
      {"cuMemRelease", (void*)mem_release},
      {"cuMemMap", (void*)mem_map},
      {"cuMemUnmap", (void*)mem_unmap},
      {"cuMemSetAccess", (void*)mem_set_access},
      {"cuMemGetAllocationGranularity", (void*)granularity},
      {"cuGetErrorString", (void*)error_string},
  };
  return known;
}

}  // namespace

extern "C" {

void fake_cuda_configure(uint64_t bytes, int placement) {
  capacity = bytes;
  policy = placement;
}

void fake_cuda_complete(uint64_t stream) { streams[stream].done = streams[stream].issued; }

void fake_cuda_capture(uint64_t stream, unsigned long long id) { streams[stream].capture = id; }

FakeCounts fake_cuda_counts() { return counts; }

cudaError_t cudaMalloc(void** at, size_t size) {
  counts.mallocs++;
  if (!take(size)) {
    counts.failed_mallocs++;
    return fail(cudaErrorMemoryAllocation);
  }
  *at = reinterpret_cast<void*>(mallocs.place(size, policy));
  return cudaSuccess;
}

cudaError_t cudaFree(void* at) {
  auto found = mallocs.taken.find(reinterpret_cast<uint64_t>(at));
  if (found == mallocs.taken.end()) return at ? fail(cudaErrorInvalidValue) : cudaSuccess;
  counts.frees++;
  counts.used -= found->second;
  mallocs.taken.erase(found);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = capacity - counts.used;
  *total = capacity;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int) {
  std::memset(prop, 0, sizeof(*prop));
  std::strcpy(prop->name, "fake");
  prop->totalGlobalMem = capacity;
  prop->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  complete_all();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned int) { return cudaSuccess; }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  *stream = reinterpret_cast<cudaStream_t>(next_stream);
  next_stream += 4096;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  fake_cuda_complete(key(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned int) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = streams[key(stream)].capture ? cudaStreamCaptureStatusActive
                                         : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** nodes,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  const auto capture = streams[key(stream)].capture;
  *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id) *id = capture;
  if (graph) *graph = nullptr;
  if (nodes) *nodes = nullptr;
  if (edges) *edges = nullptr;
  if (count) *count = 0;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  *event = reinterpret_cast<cudaEvent_t>(new Event());
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto* mine = reinterpret_cast<Event*>(event);
  mine->stream = key(stream);
  mine->serial = ++streams[mine->stream].issued;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return is_done(reinterpret_cast<Event*>(event)) ? cudaSuccess : fail(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  auto* mine = reinterpret_cast<Event*>(event);
  auto& stream = streams[mine->stream];
  if (stream.done < mine->serial) stream.done = mine->serial;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char* cudaGetErrorString(cudaError_t) { return "error of the fake runtime"; }
cudaError_t cudaGetLastError() {
  const auto error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned int,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  auto found = entry_points().find(name);
  *function = found == entry_points().end() ? (void*)unsupported : found->second;
  if (status) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

// What the library links but the caching allocator does not need.
#define UNSUPPORTED(name, ...) \
  cudaError_t name(__VA_ARGS__) { return fail(cudaErrorNotSupported); }
UNSUPPORTED(cudaDeviceGetDefaultMemPool, cudaMemPool_t*, int)
UNSUPPORTED(cudaDeviceGetGraphMemAttribute, int, cudaGraphMemAttributeType, void*)
UNSUPPORTED(cudaDeviceSetGraphMemAttribute, int, cudaGraphMemAttributeType, void*)
UNSUPPORTED(cudaFreeAsync, void*, cudaStream_t)
UNSUPPORTED(cudaGraphNodeGetDependencies, cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
            size_t*)
UNSUPPORTED(cudaIpcCloseMemHandle, void*)
UNSUPPORTED(cudaIpcGetMemHandle, cudaIpcMemHandle_t*, void*)
UNSUPPORTED(cudaIpcOpenMemHandle, void**, cudaIpcMemHandle_t, unsigned int)
UNSUPPORTED(cudaMallocAsync, void**, size_t, cudaStream_t)
UNSUPPORTED(cudaMemPoolGetAttribute, cudaMemPool_t, cudaMemPoolAttr, void*)
UNSUPPORTED(cudaMemPoolSetAccess, cudaMemPool_t, const cudaMemAccessDesc*, size_t)
UNSUPPORTED(cudaMemPoolSetAttribute, cudaMemPool_t, cudaMemPoolAttr, void*)
UNSUPPORTED(cudaMemPoolTrimTo, cudaMemPool_t, size_t)
UNSUPPORTED(cudaMemcpy, void*, const void*, size_t, cudaMemcpyKind)
UNSUPPORTED(cudaMemcpyAsync, void*, const void*, size_t, cudaMemcpyKind, cudaStream_t)
UNSUPPORTED(cudaMemcpyPeerAsync, void*, int, const void*, int, size_t, cudaStream_t)

}  // extern "C"
