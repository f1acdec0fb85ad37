// Runs one sequence of requests through PyTorch's CUDA caching allocator and prints what it did.
//
// Usage: drive REQUESTS CAPACITY PLACEMENT FRACTION HISTORY DETAIL
//   REQUESTS   text file, a request a line (see record.py)
//   CAPACITY   bytes of the fake device
//   PLACEMENT  0 lowest gap, 1 rising, 2 falling (fake_cuda.cpp)
//   FRACTION   memory fraction to set before the first request, or 0
//   HISTORY    number of the request before which the history begins, or -1
//   DETAIL     0 the outcome, 1 and the addresses, 2 and the snapshot
// The settings come from PYTORCH_CUDA_ALLOC_CONF. Prints one JSON object.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "fake_cuda.h"

// Exported by libc10_cuda.so, but in none of its headers.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace allocator = c10::cuda::CUDACachingAllocator;

static cudaStream_t handle_of(uint64_t number) {
  return reinterpret_cast<cudaStream_t>(number ? 0x520000000000 + number * 4096 : 0);
}

static uint64_t key_of(uint64_t number) { return reinterpret_cast<uint64_t>(handle_of(number)); }

static c10::cuda::CUDAStream stream_of(uint64_t number) {
  return number ? c10::cuda::getStreamFromExternal(handle_of(number), 0)
                : c10::cuda::getDefaultCUDAStream(0);
}

static std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

static void print_snapshot() {
  const auto snapshot = allocator::snapshot();
  static const char* actions[] = {"alloc",       "free_requested", "free_completed", "segment_alloc",
                                  "segment_free", "segment_map",    "segment_unmap",  "snapshot",
                                  "oom",          "annotate"};
  const char* comma = "";
  std::cout << ",\n\"segments\":[";
  for (const auto& s : snapshot.segments) {
    std::cout << comma << "\n[" << s.address << "," << s.total_size << "," << s.requested_size << ","
              << s.allocated_size << "," << s.active_size << "," << (uint64_t)s.stream << ","
              << s.is_large << "," << s.is_expandable << "," << s.owner_private_pool_id.first << ","
              << s.owner_private_pool_id.second << "," << s.registration_counter << ",[";
    comma = "";
    for (const auto& b : s.blocks) {
      std::cout << comma << "[" << b.size << "," << b.requested_size << "," << b.allocated << ","
                << b.active << "]";
      comma = ",";
    }
    std::cout << "]]";
    comma = ",";
  }
  std::cout << "],\n\"traces\":[";
  const char* first = "";
  for (const auto& trace : snapshot.device_traces) {
    std::cout << first << "[";
    first = ",";
    comma = "";
    for (const auto& e : trace) {
      std::cout << comma << "\n[\"" << actions[e.action_] << "\"," << e.addr_ << "," << e.size_
                << "," << (uint64_t)e.stream_ << "," << e.mempool_.first << ","
                << e.mempool_.second << "]";
      comma = ",";
    }
    std::cout << "]";
  }
  const auto& c = snapshot.config_metadata;
  std::cout << "],\n\"config\":{\"last\":" << quoted(c.last_allocator_settings)
            << ",\"max_split_size\":" << (int64_t)c.max_split_size
            << ",\"garbage_collection_threshold\":" << c.garbage_collection_threshold
            << ",\"expandable_segments\":" << c.expandable_segments
            << ",\"pinned_num_register_threads\":" << c.pinned_num_register_threads
            << ",\"release_lock_on_malloc\":" << c.release_lock_on_malloc
            << ",\"pinned_use_host_register\":" << c.pinned_use_host_register
            << ",\"graph_capture_record_stream_reuse\":" << c.graph_capture_record_stream_reuse
            << ",\"max_round_threshold\":" << (int64_t)c.max_round_threshold
            << ",\"max_cached_size\":" << (int64_t)c.max_cached_size
            << ",\"roundup_power2_divisions\":[";
  comma = "";
  for (auto d : c.roundup_power2_divisions) {
    std::cout << comma << d;
    comma = ",";
  }
  std::cout << "]}";
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  std::ifstream requests(argv[1]);
  const uint64_t capacity = std::strtoull(argv[2], nullptr, 10);
  const double fraction = std::atof(argv[4]);
  const long history = std::atol(argv[5]);
  const int detail = std::atoi(argv[6]);
  fake_cuda_configure(capacity, std::atoi(argv[3]));
  // What the parts of PyTorch that are not here would have done.
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  c10::cuda::detail::init_p2p_access_cache(1);
  allocator::init(1);
  auto* real = allocator::get();
  if (fraction > 0) allocator::setMemoryFraction(fraction, 0);

  std::unordered_map<uint64_t, void*> live;
  std::vector<uint64_t> addresses;
  long index = 0, failed = -1;
  std::string line, message;
  while (std::getline(requests, line)) {
    if (index == history) {
      allocator::recordHistory(true, nullptr, SIZE_MAX, allocator::RecordContext::NEVER, true, {});
    }
    std::istringstream fields(line);
    std::string kind;
    uint64_t a = 0, b = 0, c = 0;
    double part = 0;
    fields >> kind;
    if (kind == "m") {
      fields >> part;
    } else {
      fields >> a >> b >> c;
    }
    try {
      if (kind == "a") {
        void* at = real->raw_alloc_with_stream(b, handle_of(c));
        live[a] = at;
        addresses.push_back(reinterpret_cast<uint64_t>(at));
      } else if (kind == "f") {
        real->raw_delete(live.at(a));
        live.erase(a);
      } else if (kind == "r") {
        void* at = live.at(a);
        c10::DataPtr data(at, at, real->raw_deleter(), c10::Device(c10::kCUDA, 0));
        real->recordStream(data, stream_of(b));
        data.release_context();
      } else if (kind == "d") {
        fake_cuda_complete(key_of(a));
      } else if (kind == "e") {
        allocator::emptyCache();
      } else if (kind == "m") {
        allocator::setMemoryFraction(part, 0);
      } else if (kind == "b") {
        const auto wanted = handle_of(b);
        real->beginAllocateToPool(0, {0, a}, [wanted](cudaStream_t s) { return s == wanted; });
      } else if (kind == "x") {
        real->endAllocateToPool(0, {0, a});
      } else if (kind == "p") {
        real->releasePool(0, {0, a});
      } else if (kind == "g") {
        fake_cuda_capture(key_of(a), b);
        if (b) {
          real->markCaptureBegin(0);
        } else {
          real->markCaptureEnd(0);
        }
      } else {
        std::cerr << "unknown request: " << line << "\n";
        return 2;
      }
    } catch (const c10::OutOfMemoryError& error) {
      failed = index;
      message = error.what_without_backtrace();
      break;
    } catch (const std::exception& error) {
      std::cerr << "request " << index << " (" << line << "): " << error.what() << "\n";
      return 3;
    }
    ++index;
  }

  const auto stats = real->getDeviceStats(0);
  const auto counts = fake_cuda_counts();
  std::cout << "{\"failed\":" << failed << ",\"message\":" << quoted(message)
            << ",\"peak_allocated\":" << stats.allocated_bytes[0].peak
            << ",\"peak_active\":" << stats.active_bytes[0].peak
            << ",\"peak_requested\":" << stats.requested_bytes[0].peak
            << ",\"peak_reserved\":" << stats.reserved_bytes[0].peak
            << ",\"allocated\":" << stats.allocated_bytes[0].current
            << ",\"reserved\":" << stats.reserved_bytes[0].current
            << ",\"inactive_split\":" << stats.inactive_split_bytes[0].current
            << ",\"retries\":" << stats.num_alloc_retries << ",\"ooms\":" << stats.num_ooms
            << ",\"synchronised\":" << stats.num_sync_all_streams
            << ",\"device_allocs\":" << stats.num_device_alloc
            << ",\"device_frees\":" << stats.num_device_free << ",\"cuda_mallocs\":" << counts.mallocs
            << ",\"failed_cuda_mallocs\":" << counts.failed_mallocs
            << ",\"cuda_frees\":" << counts.frees << ",\"mem_creates\":" << counts.creates
            << ",\"mem_releases\":" << counts.releases << ",\"device_peak\":" << counts.peak;
  if (detail >= 1) {
    std::cout << ",\n\"addresses\":[";
    const char* comma = "";
    for (auto at : addresses) {
      std::cout << comma << at;
      comma = ",";
    }
    std::cout << "]";
  }
  if (detail >= 2) print_snapshot();
  std::cout << "}" << std::endl;
  std::_Exit(0);
}
