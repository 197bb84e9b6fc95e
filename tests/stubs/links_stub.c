/* The few functions of NVML and libcuda that tell what a GPU's links carry: LINKS_STUB_NVLINKS links
 * are up (0 without NVLink), of LINKS_STUB_SPEED MB/s each; PCIe is of the fifth generation, x16. */
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    int type, status;
    unsigned long long value;
} field_value;

static unsigned number(const char *name) {
    const char *value = getenv(name);
    return value ? (unsigned)atoi(value) : 0;
}

int cuInit(unsigned flags) { return (int)flags; }

int cuDeviceGet(int *device, int index) {
    *device = index;
    return 0;
}

int cuDeviceGetPCIBusId(char *to, int room, int device) {
    snprintf(to, (size_t)room, "0000:%02X:00.0", 0x19 + device);
    return 0;
}

int nvmlInit_v2(void) { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **handle) {
    *handle = (void *)address;
    return address[5] == '1' && address[6] == 'A' ? 0 : 6; /* only the second GPU is known */
}

int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *state) {
    (void)handle;
    *state = link < number("LINKS_STUB_NVLINKS");
    return link < 18 ? 0 : 2;
}

int nvmlDeviceGetFieldValues(void *handle, int count, field_value *values) {
    (void)handle;
    (void)count;
    values->status = values->field == 90 ? 0 : 3;
    values->value = number("LINKS_STUB_SPEED");
    return 0;
}

int nvmlDeviceGetMaxPcieLinkGeneration(void *handle, unsigned *generation) {
    (void)handle;
    *generation = 5;
    return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(void *handle, unsigned *width) {
    (void)handle;
    *width = 16;
    return 0;
}
