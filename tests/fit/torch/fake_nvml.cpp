// libnvidia-ml.so.1 without a GPU: a device without fabric handles, on which no process runs.
extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = nullptr;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned int* count, void*) {
  *count = 0;
  return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType() { return 3; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2() { return 3; }
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return 0;
}
}
