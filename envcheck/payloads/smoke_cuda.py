"""The driver alone, through libcuda, without any framework: `python smoke_cuda.py`.

Start CUDA, make a context, copy data to each GPU and back, run a kernel that the driver compiles.
"""

import ctypes
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Last, and the working directory not at all: nothing here may hide what other programs import.
sys.path[:] = [each for each in sys.path if each not in ("", HERE)] + [HERE]
from smoke_stages import Stages, Wrong, check, libcuda, read_settings  # noqa: E402

COPIED = 64 << 20
"""Bytes that are copied each way for the bandwidth."""
NUMBERS = 1 << 20
FACTOR = 3.0
KERNEL = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 count)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %d<4>;
    .reg .f32 %f<3>;
    ld.param.u64 %d0, [data];
    ld.param.f32 %f0, [factor];
    ld.param.u32 %r0, [count];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r0;
    @%p ret;
    cvta.to.global.u64 %d1, %d0;
    mul.wide.u32 %d2, %r4, 4;
    add.u64 %d3, %d1, %d2;
    ld.global.f32 %f1, [%d3];
    mul.f32 %f2, %f1, %f0;
    st.global.f32 [%d3], %f2;
    ret;
}
\0"""
"""Multiplies an array by a factor, one thread per number."""


class Gpu:
    """One GPU with a context, through libcuda."""

    def __init__(self, library, index):
        """Remember which one; nothing happens yet."""
        self.library = library
        self.index = index
        self.context = ctypes.c_void_p()

    def call(self, name, *arguments):
        """Call a function of libcuda and raise what it says."""
        check(self.library, name, getattr(self.library, name)(*arguments))

    def open(self):
        """Make the GPU's primary context, which every framework shares, current."""
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), self.index)
        self.device = device
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuCtxSynchronize")
        free, total = self.memory()
        return {"memory_free": (free, "B"), "memory_total": (total, "B")}

    def close(self):
        """Give the context back."""
        release = getattr(self.library, "cuDevicePrimaryCtxRelease_v2", None)
        if self.context.value and release is not None:
            release(self.device)

    def memory(self):
        """Bytes that are free, and all."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, size):
        """Memory on the GPU."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def copies(self):
        """To the GPU and back: what comes back is what went, and how fast each way is."""
        metrics = {}
        there = self.allocate(COPIED)
        pattern = os.urandom(1 << 16) * (COPIED >> 16)
        size = ctypes.c_size_t(COPIED)
        for kind in ("pageable", "pinned"):
            data, back = self.host_memory(kind), self.host_memory(kind)
            ctypes.memmove(data, pattern, COPIED)
            ctypes.memset(back, 0, COPIED)
            for way, call, arguments in (
                ("to_gpu", "cuMemcpyHtoD_v2", (there, data, size)),
                ("from_gpu", "cuMemcpyDtoH_v2", (back, there, size)),
            ):
                self.call(call, *arguments)  # the first one sets things up
                started = time.perf_counter()
                self.call(call, *arguments)
                self.call("cuCtxSynchronize")
                rate = COPIED / (time.perf_counter() - started) / 1e9
                metrics["%s_%s" % (kind, way)] = (rate, "GB/s")
            if ctypes.string_at(back, COPIED) != pattern:
                raise Wrong("data came back from the GPU changed (%s memory)" % kind)
            if kind == "pinned":
                self.call("cuMemFreeHost", data)
                self.call("cuMemFreeHost", back)
        self.call("cuMemFree_v2", there)
        return metrics

    def host_memory(self, kind):
        """Memory of the host, pinned or not."""
        if kind == "pageable":
            return ctypes.create_string_buffer(COPIED)
        address = ctypes.c_void_p()
        self.call("cuMemAllocHost_v2", ctypes.byref(address), ctypes.c_size_t(COPIED))
        return address

    def kernel(self):
        """The driver compiles a kernel for this GPU, runs it, and the numbers are right."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), KERNEL)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"scale")
        numbers = (ctypes.c_float * NUMBERS)(*range(NUMBERS))
        size = ctypes.c_size_t(ctypes.sizeof(numbers))
        there = self.allocate(size.value)
        self.call("cuMemcpyHtoD_v2", there, numbers, size)
        values = (there, ctypes.c_float(FACTOR), ctypes.c_uint32(NUMBERS))
        pointers = (ctypes.c_void_p * 3)(
            *(ctypes.cast(ctypes.pointer(each), ctypes.c_void_p) for each in values)
        )
        grid, block = ((NUMBERS + 255) // 256, 1, 1), (256, 1, 1)
        self.call("cuLaunchKernel", function, *grid, *block, 0, None, pointers, None)
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", numbers, there, size)
        self.call("cuMemFree_v2", there)
        self.call("cuModuleUnload", module)
        for at in range(NUMBERS):
            # Every product is a whole number that float32 holds exactly.
            if numbers[at] != FACTOR * at:
                raise Wrong("%g times %d came out as %r" % (FACTOR, at, numbers[at]))

    def given_back(self, before):
        """Memory that was allocated is free again."""
        free, _total = self.memory()
        # The driver keeps what it loaded for the kernel.
        if free < before - (256 << 20):
            raise RuntimeError("%d bytes were free before and %d after" % (before, free))
        return {"memory_free": (free, "B")}


def find_gpus(library, wanted):
    """Indices of the GPUs that CUDA sees, and of those that were asked for."""
    count = ctypes.c_int()
    check(library, "cuDeviceGetCount", library.cuDeviceGetCount(ctypes.byref(count)))
    missing = [each for each in wanted or () if each >= count.value]
    if missing:
        raise RuntimeError(
            "GPU %s was asked for, and CUDA sees %d" % (", ".join(map(str, missing)), count.value)
        )
    if not count.value:
        raise RuntimeError("cuDeviceGetCount: CUDA sees no GPU")
    return list(range(count.value)) if wanted is None else wanted


def main(argv):
    """Run the stages that were asked for."""
    settings = read_settings(argv)
    stages = Stages("cuda", settings)
    if settings["device"] == "cpu":
        stages.skip("libcuda", "for GPUs")
        return 0
    held: "dict[str, ctypes.CDLL]" = {}
    if not stages.run("libcuda", lambda: held.update(library=libcuda())):
        return 1
    library = held["library"]
    found = []
    if not stages.run("find-devices", lambda: found.extend(find_gpus(library, settings["gpus"]))):
        return 1
    stages.say("devices", indices=found)
    for at in found:
        stages.start("cuda:%d" % at)
        gpu = Gpu(library, at)
        stages.still_there = lambda gpu=gpu: gpu.call("cuCtxSynchronize")
        if stages.run("context", gpu.open):
            before = gpu.memory()[0]
            stages.run("copy", gpu.copies)
            stages.run("kernel", gpu.kernel)
            stages.run("memory", gpu.given_back, before)
        stages.say("done", index=at)
        if stages.lost:
            return 1
        gpu.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
