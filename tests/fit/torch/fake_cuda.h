// What the driver program sets and reads of the fake CUDA runtime.
#pragma once

#include <cstdint>

struct FakeCounts {
  uint64_t used, peak;               // device bytes held now and at most
  uint64_t mallocs, failed_mallocs;  // calls of cudaMalloc, and those that failed
  uint64_t frees;                    // calls of cudaFree
  uint64_t creates, releases;        // calls of cuMemCreate and cuMemRelease
  uint64_t reserves;                 // calls of cuMemAddressReserve
};

extern "C" {
void fake_cuda_configure(uint64_t bytes, int placement);
void fake_cuda_complete(uint64_t stream);
void fake_cuda_capture(uint64_t stream, unsigned long long id);
FakeCounts fake_cuda_counts();
}
