/* A libcuda for tests: CUDA_STUB_INIT is what cuInit does (a CUresult, hang, segv, abort),
 * CUDA_STUB_VERSION the interface (12040), CUDA_STUB_COUNT the number of GPUs. -DBARE: no cuInit. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

int cuDriverGetVersion(int *version) {
    *version = atoi(setting("CUDA_STUB_VERSION", "12040"));
    return 0;
}

#ifndef BARE
int cuInit(unsigned flags) {
    const char *wish = setting("CUDA_STUB_INIT", "0");
    (void)flags;
    if (!strcmp(wish, "hang"))
        for (;;) pause();
    if (!strcmp(wish, "segv")) raise(SIGSEGV);
    if (!strcmp(wish, "abort")) abort();
    return atoi(wish);
}

int cuGetErrorName(int code, const char **name) {
    *name = code == 100   ? "CUDA_ERROR_NO_DEVICE"
            : code == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
            : code == 804 ? "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"
                          : "CUDA_ERROR_UNKNOWN";
    return 0;
}

int cuGetErrorString(int code, const char **words) {
    *words = code == 803 ? "system has unsupported display driver / cuda driver combination"
                         : "an error";
    return 0;
}

int cuDeviceGetCount(int *number) {
    *number = atoi(setting("CUDA_STUB_COUNT", "1"));
    return 0;
}

int cuDeviceGet(int *device, int index) {
    *device = index;
    return 0;
}

int cuDeviceGetName(char *to, int room, int device) {
    (void)device;
    snprintf(to, (size_t)room, "NVIDIA L40S");
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 8 : attribute == 76 ? 9 : 0;
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = 48UL << 30;
    return 0;
}

int cuDeviceGetPCIBusId(char *to, int room, int device) {
    snprintf(to, (size_t)room, "0000:%02X:00.0", 0x3b + device);
    return 0;
}
#endif
