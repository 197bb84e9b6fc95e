/* An NVML for tests that answers as NVIDIA_STUB_* say, on machines without a GPU.
 *
 * NVIDIA_STUB_INIT    what initialisation does: an NVML error number, hang, segv, abort, chatter
 * NVIDIA_STUB_DRIVER  driver release        NVIDIA_STUB_CUDA   CUDA interface, 12040
 * NVIDIA_STUB_COUNT   number of GPUs        NVIDIA_STUB_LOST   index of the GPU that fell off the bus
 * Compiled with -DBARE it has no function but initialisation, with -DEMPTY not even that; with
 * -DOLD it is of a driver that has no nvmlInitWithFlags, which newer bindings call.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK, NOT_INITIALISED = 1, INVALID = 2, TOO_SMALL = 7, LOST = 15 };

const char *nvmlErrorString(int code) {
    switch (code) {
    case 0: return "Success";
    case 9: return "Driver Not Loaded";
    case 12: return "NVML Shared Library Not Found";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

#ifndef EMPTY
static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

int nvmlInit_v2(void) {
    const char *wish = setting("NVIDIA_STUB_INIT", "0");
    if (!strcmp(wish, "hang"))
        for (;;) pause();
    if (!strcmp(wish, "segv")) raise(SIGSEGV);
    if (!strcmp(wish, "abort")) abort();
    if (!strcmp(wish, "chatter")) {
        puts("envcheck-json:not json at all");
        fflush(stdout);
        return OK;
    }
    return atoi(wish);
}
#endif

#if !defined(OLD) && !defined(EMPTY)
int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return nvmlInit_v2();
}
#endif

#if !defined(BARE) && !defined(EMPTY)
static int numbers[16];

static int count(void) { return atoi(setting("NVIDIA_STUB_COUNT", "1")); }

static int copy(char *to, unsigned room, const char *text) {
    if (strlen(text) >= room) return TOO_SMALL;
    strcpy(to, text);
    return OK;
}

int nvmlShutdown(void) { return OK; }

int nvmlSystemGetDriverVersion(char *to, unsigned room) {
    return copy(to, room, setting("NVIDIA_STUB_DRIVER", "550.54.15"));
}

int nvmlSystemGetCudaDriverVersion(int *version) {
    *version = atoi(setting("NVIDIA_STUB_CUDA", "12040"));
    return OK;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return nvmlSystemGetCudaDriverVersion(version);
}

int nvmlDeviceGetCount_v2(unsigned *number) {
    *number = (unsigned)count();
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if ((int)index >= count()) return INVALID;
    if ((int)index == atoi(setting("NVIDIA_STUB_LOST", "-1"))) return LOST;
    numbers[index] = (int)index;
    *handle = &numbers[index];
    return OK;
}

int nvmlDeviceGetName(void *gpu, char *to, unsigned room) {
    (void)gpu;
    return copy(to, room, "NVIDIA L40S");
}

int nvmlDeviceGetCudaComputeCapability(void *gpu, int *major, int *minor) {
    (void)gpu;
    *major = 8;
    *minor = 9;
    return OK;
}

struct pci {
    char legacy[16];
    unsigned domain, bus, device, pci_id, subsystem_id;
    char bus_id[32];
};

int nvmlDeviceGetPciInfo_v3(void *gpu, struct pci *answer) {
    memset(answer, 0, sizeof *answer);
    answer->bus = 0x3b + (unsigned)*(int *)gpu;
    snprintf(answer->bus_id, sizeof answer->bus_id, "00000000:%02X:00.0", answer->bus);
    return OK;
}

struct memory {
    unsigned long long total, free, used;
};

int nvmlDeviceGetMemoryInfo(void *gpu, struct memory *answer) {
    (void)gpu;
    answer->total = 48ULL << 30;
    answer->used = 1ULL << 30;
    answer->free = answer->total - answer->used;
    return OK;
}

int nvmlDeviceGetPersistenceMode(void *gpu, int *mode) {
    (void)gpu;
    *mode = 1;
    return OK;
}
#endif
