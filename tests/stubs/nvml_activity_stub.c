/* An NVML with GPM for tests: one GPU (or NVIDIA_STUB_COUNT) that is always at the work that
 * NVIDIA_STUB_WORK names: matmul, tiny, idle; NVIDIA_STUB_GPM=0 takes the GPM metrics away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK, INVALID = 2, NOT_SUPPORTED = 3 };

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static int at_work(const char *what) { return !strcmp(setting("NVIDIA_STUB_WORK", "idle"), what); }

const char *nvmlErrorString(int code) { return code == NOT_SUPPORTED ? "Not Supported" : "Error"; }
int nvmlInitWithFlags(unsigned flags) { return (void)flags, atoi(setting("NVIDIA_STUB_INIT", "0")); }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }

int nvmlSystemGetDriverVersion(char *to, unsigned room) {
    snprintf(to, room, "580.159.04");
    return OK;
}

static int numbers[16];

int nvmlDeviceGetCount_v2(unsigned *number) {
    *number = (unsigned)atoi(setting("NVIDIA_STUB_COUNT", "1"));
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    unsigned count;
    nvmlDeviceGetCount_v2(&count);
    if (index >= count) return INVALID;
    numbers[index] = (int)index;
    *handle = &numbers[index];
    return OK;
}

int nvmlDeviceGetName(void *gpu, char *to, unsigned room) {
    (void)gpu;
    snprintf(to, room, "NVIDIA H200");
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(void *gpu, int *major, int *minor) {
    (void)gpu;
    *major = 9;
    *minor = 0;
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long answer[3]) {
    (void)gpu;
    answer[0] = 141ULL << 30;
    answer[2] = 2ULL << 30;
    answer[1] = answer[0] - answer[2];
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *gpu, unsigned answer[2]) {
    (void)gpu;
    answer[0] = at_work("matmul") ? 99 : at_work("tiny") ? 27 : 0;
    answer[1] = 0;
    return OK;
}

int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts) {
    (void)gpu;
    *milliwatts = at_work("matmul") ? 688000 : at_work("tiny") ? 120000 : 78000;
    return OK;
}

int nvmlDeviceGetEnforcedPowerLimit(void *gpu, unsigned *milliwatts) {
    (void)gpu;
    *milliwatts = 700000;
    return OK;
}

int nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned *celsius) {
    (void)gpu;
    (void)sensor;
    *celsius = 45;
    return OK;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, unsigned long long *reasons) {
    (void)gpu;
    *reasons = strtoull(setting("NVIDIA_STUB_THROTTLE", "0"), NULL, 0);
    return OK;
}

struct support {
    unsigned version, supported;
};

int nvmlGpmQueryDeviceSupport(void *gpu, struct support *answer) {
    (void)gpu;
    answer->supported = (unsigned)atoi(setting("NVIDIA_STUB_GPM", "1"));
    return OK;
}

int nvmlGpmSampleAlloc(void **sample) {
    *sample = calloc(1, 64);
    return OK;
}

int nvmlGpmSampleGet(void *gpu, void *sample) {
    (void)gpu;
    (void)sample;
    return OK;
}

struct metrics {
    unsigned version, count;
    void *older, *newer;
    struct {
        unsigned id;
        int status;
        double value;
        char *names[3];
    } each[];
};

int nvmlGpmMetricsGet(struct metrics *wanted) {
    for (unsigned at = 0; at < wanted->count; at++) {
        double value = 0.0;
        switch (wanted->each[at].id) {
        case 1: value = at_work("matmul") ? 99.0 : at_work("tiny") ? 27.0 : 0.0; break;
        case 2: value = at_work("matmul") ? 94.92 : at_work("tiny") ? 0.03 : 0.0; break;
        case 3: value = at_work("matmul") ? 14.03 : 0.0; break;
        case 5: value = at_work("matmul") ? 92.16 : 0.0; break;
        case 10: value = at_work("matmul") ? 15.92 : 0.0; break;
        }
        wanted->each[at].value = value;
        wanted->each[at].status = wanted->each[at].id == 60 || wanted->each[at].id == 61 ? NOT_SUPPORTED : OK;
    }
    return OK;
}
