/* A fake libnvidia-ml.so.1, played from a text file that is read anew at each call.
 *
 *   cc -O2 -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fake_nvml.c -lpthread
 *   LD_LIBRARY_PATH=$PWD FAKE_NVML_STATE=state.txt gpu-report record ...
 *
 * FAKE_NVML_STATE names the file, FAKE_NVML_TRACE a file that gets one line a call. Lines of the state:
 *
 *   start=1795223207.5          CLOCK_REALTIME of second 0 of the script (default: when the library was loaded)
 *   count=2                     number of GPUs
 *   gpu0.util=97                a value: util memory_util used_mib total_mib reserved_mib power_w power_limit_w
 *                               energy_j temperature sm_clock memory_clock pstate reasons name uuid bus mig
 *                               pcie_gen pcie_width pcie_gen_max pcie_gen_gpu_max pcie_width_max
 *   util=97                     the same for all GPUs that have no line of their own
 *   gpu0.procs=41:4000,42:-     processes: pid:MiB ("-": the driver does not say); gpu0.graphics= likewise
 *   gpu0.proc_util=41:24,42:7   their utilisation (24 for each when left out; stamped an hour ago with proc_util_old=1)
 *   gpu0.mig=1                  MIG mode; gpu0.migs=2 MIG devices, of which gpu0.mig1.used_mib= and so on are the values
 *   gpu0.error=15               every call on this GPU answers this nvmlReturn_t
 *   error.nvmlInitWithFlags=18  this call does, on every GPU; gpu0.error.nvmlDeviceGetPowerUsage=3 on one
 *   gpu0.delay=3.0, gpu0.delay.nvmlDeviceGetPowerUsage=3.0, delay.nvmlX=...   seconds before the answer
 *   gpu0.hang=1, ...                                                         no answer, ever
 *   at=12.0 gpu0.util=3         any of these from second 12 of the script on (the last line that applies wins)
 *   at=3.0 gpu0.xid=31          an Xid event at that second
 *   square=gpu0.util 97 3 1.4 0.6   97 for 1.4 s, 3 for 0.6 s, and so on from second 0
 *
 * It proves the recorder's logic, never the hardware's behaviour. GPM answers NotSupported with gpm=0; else its metrics are
 * the mean of sm_active, sm_occupancy, tensor, dram, pcie_tx, pcie_rx, nvlink_tx, nvlink_rx over the two samples' span.
 * ring_clock=boot stamps the driver's own readings by boot time, ring=0 keeps none, ring=shuffled returns them unsorted
 * with an empty slot, ring=old returns those before the last seen one as well. A count that shrinks loses the GPUs beyond.
 * Health: ecc_{volatile,aggregate}_{corrected,uncorrected}, remap_{correctable,uncorrectable,pending,failure}, pcie_replays,
 * recovery_action, retired_{sbe,dbe,pending} (NotSupported when left out). A counter goes back with energy_j or any of these.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>
#include <math.h>

typedef int nvmlReturn_t;
typedef struct fake_device { int index; } *nvmlDevice_t;
enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       TIMEOUT = 10, GPU_IS_LOST = 15, VERSION_MISMATCH = 25, UNKNOWN = 999 };
#define EXPORT __attribute__((visibility("default")))
#define MAX_GPUS 128
#define MAX_MIGS 7
#define MAX_LINES 2048

typedef struct { double at; const char *key; const char *value; int square; } Line;
typedef struct { char *text; int n; double start; Line lines[MAX_LINES]; } State;

static struct fake_device devices[MAX_GPUS * (1 + MAX_MIGS)]; /* GPUs first, then the MIG devices of each */
static int init_count;
static double loaded_at;

static double wall(void) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); return t.tv_sec + t.tv_nsec / 1e9; }

static double boot(void) { struct timespec t; clock_gettime(CLOCK_BOOTTIME, &t); return t.tv_sec + t.tv_nsec / 1e9; }

__attribute__((constructor)) static void loaded(void) {
    loaded_at = wall();
    for (int i = 0; i < MAX_GPUS * (1 + MAX_MIGS); i++) devices[i].index = i;
}

static int is_mig(int device) { return device >= MAX_GPUS; }
static int gpu_of(int device) { return is_mig(device) ? (device - MAX_GPUS) / MAX_MIGS : device; }
static int slot_of(int device) { return (device - MAX_GPUS) % MAX_MIGS; }

/* The beginning of a device's own lines: gpu0, or gpu0.mig1. */
static void name_lines(int device, char *out, size_t size) {
    if (is_mig(device)) snprintf(out, size, "gpu%d.mig%d", gpu_of(device), slot_of(device));
    else snprintf(out, size, "gpu%d", device);
}

/* ---- the state file ---- */

static char *read_whole(const char *path) {
    FILE *f = path ? fopen(path, "re") : NULL;
    if (!f) return calloc(1, 1);
    size_t used = 0, room = 1 << 14;
    char *text = malloc(room + 1);
    for (size_t n; (n = fread(text + used, 1, room - used, f)) > 0;) {
        used += n;
        if (used == room) text = realloc(text, (room *= 2) + 1);
    }
    text[used] = 0;
    fclose(f);
    return text;
}

static State *load(void) {
    State *s = malloc(sizeof *s);
    s->text = read_whole(getenv("FAKE_NVML_STATE"));
    s->n = 0;
    s->start = loaded_at;
    char *keep;
    for (char *p = strtok_r(s->text, "\n", &keep); p && s->n < MAX_LINES; p = strtok_r(NULL, "\n", &keep)) {
        Line line = {-1e18, NULL, NULL, 0};
        if (!strncmp(p, "at=", 3)) {
            line.at = strtod(p + 3, &p);
            while (*p == ' ') p++;
        }
        if (!strncmp(p, "square=", 7)) { line.square = 1; p += 7; }
        char *eq = strchr(p, line.square ? ' ' : '=');
        if (*p == '#' || !eq) continue;
        *eq = 0;
        line.key = p;
        line.value = eq + 1;
        if (!strcmp(p, "start")) s->start = atof(line.value);
        else s->lines[s->n++] = line;
    }
    return s;
}

static void drop(State *s) { free(s->text); free(s); }

static const char *square(const char *spec, double t, char *out, size_t size) {
    double high, low, high_s, low_s;
    if (sscanf(spec, "%lf %lf %lf %lf", &high, &low, &high_s, &low_s) != 4) return NULL;
    double into = fmod(t, high_s + low_s);
    snprintf(out, size, "%g", into < 0 || into < high_s ? high : low);
    return out;
}

/* The text of `key` at second t of the script: the GPU's own line, else the line for all; NULL when there is none. */
static const char *text_at(const State *s, int gpu, const char *key, double t) {
    static __thread char buffer[64];
    char name[32], own[160];
    name_lines(gpu, name, sizeof name);
    snprintf(own, sizeof own, "%s.%s", name, key);
    for (int pass = gpu < 0; pass < 2; pass++)
        for (int i = s->n - 1; i >= 0; i--)
            if (s->lines[i].at <= t && !strcmp(s->lines[i].key, pass ? key : own))
                return s->lines[i].square ? square(s->lines[i].value, t, buffer, sizeof buffer) : s->lines[i].value;
    return NULL;
}

static double number_at(const State *s, int gpu, const char *key, double fallback, double t) {
    const char *text = text_at(s, gpu, key, t);
    return text && *text ? atof(text) : fallback;
}

static double number(const State *s, int gpu, const char *key, double fallback) {
    return number_at(s, gpu, key, fallback, wall() - s->start);
}

static double per_call(const State *s, int gpu, const char *what, const char *call) {
    char key[160];
    snprintf(key, sizeof key, "%s.%s", what, call);
    double own = number(s, gpu, key, 0);
    return own || gpu < 0 ? own : number(s, gpu, what, 0);
}

static void trace(const char *call, int gpu) {
    const char *path = getenv("FAKE_NVML_TRACE");
    FILE *f = path ? fopen(path, "ae") : NULL;
    if (!f) return;
    fprintf(f, "%.3f %s %d\n", wall(), call, gpu);
    fclose(f);
}

/* What every call does first: delay, hang or fail as the state says. */
static nvmlReturn_t enter(State **s, const char *call, int gpu, int needs_init) {
    trace(call, gpu);
    *s = load();
    double delay = per_call(*s, gpu, "delay", call);
    if (delay > 0) usleep((useconds_t)(delay * 1e6));
    if (per_call(*s, gpu, "hang", call) > 0) for (;;) pause();
    if (delay > 0) { drop(*s); *s = load(); }
    nvmlReturn_t error = (nvmlReturn_t)per_call(*s, gpu, "error", call);
    if (!error && needs_init && !init_count) error = UNINITIALIZED;
    if (error) drop(*s);
    return error;
}

static int gpu_count(const State *s) {
    int n = (int)number(s, -1, "count", 1);
    return n > MAX_GPUS ? MAX_GPUS : n;
}
static int in_mig_mode(const State *s, int gpu) { return number(s, gpu, "mig", 0) > 0; }
static int mig_count(const State *s, int gpu) {
    int n = in_mig_mode(s, gpu) ? (int)number(s, gpu, "migs", 0) : 0;
    return n > MAX_MIGS ? MAX_MIGS : n;
}

#define SYSTEM(init) State *s; { nvmlReturn_t e = enter(&s, __func__, -1, init); if (e) return e; }
#define DONE(code) do { nvmlReturn_t answer_ = (code); drop(s); return answer_; } while (0)
/* A call that MIG devices know, and one that only GPUs do. A GPU that is no longer counted is lost. */
#define ANY_DEVICE State *s; if (!d) return INVALID_ARGUMENT; \
    { nvmlReturn_t e = enter(&s, __func__, d->index, 1); if (e) return e; } \
    if (gpu_of(d->index) >= gpu_count(s)) DONE(GPU_IS_LOST)
#define DEVICE ANY_DEVICE; if (is_mig(d->index)) DONE(INVALID_ARGUMENT)
/* One that a GPU in MIG mode does not answer either. */
#define WHOLE_DEVICE ANY_DEVICE; if (is_mig(d->index) || in_mig_mode(s, d->index)) DONE(NOT_SUPPORTED)

static void copy(char *out, const char *text, unsigned size) {
    if (size) { strncpy(out, text, size - 1); out[size - 1] = 0; }
}


/* ---- system ---- */

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) { (void)flags; SYSTEM(0); init_count++; DONE(OK); }
EXPORT nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT nvmlReturn_t nvmlShutdown(void) { SYSTEM(1); init_count--; DONE(OK); }

EXPORT const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case 9: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case 13: return "Function Not Found";
    case GPU_IS_LOST: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 18: return "Driver/library version mismatch";
    case VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned size) {
    SYSTEM(1);
    const char *t = text_at(s, -1, "driver", 0);
    copy(out, t ? t : "580.159.04", size);
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    SYSTEM(1);
    copy(out, "13.580.159.04", size);
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *v) { SYSTEM(1); *v = 13000; DONE(OK); }
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *v) { return nvmlSystemGetCudaDriverVersion(v); }
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) { SYSTEM(1); *n = (unsigned)gpu_count(s); DONE(OK); }

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out) {
    State *s;
    nvmlReturn_t e = enter(&s, __func__, (int)index, 1);
    if (e) return e;
    if (index >= (unsigned)gpu_count(s)) DONE(INVALID_ARGUMENT);
    *out = &devices[index];
    DONE(OK);
}

/* ---- identity ---- */

static void uuid_of(const State *s, int gpu, char *out, unsigned size) {
    char text[64];
    if (is_mig(gpu)) snprintf(text, sizeof text, "MIG-00000000-0000-4000-8%03d-%012d", slot_of(gpu) + 1, gpu_of(gpu) + 1);
    else snprintf(text, sizeof text, "GPU-00000000-0000-4000-8000-%012d", gpu + 1);
    const char *own = text_at(s, gpu, "uuid", 0);
    copy(out, own ? own : text, size);
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *out, unsigned size) {
    ANY_DEVICE;
    const char *t = text_at(s, d->index, "name", 0);
    copy(out, t ? t : is_mig(d->index) ? "NVIDIA H200 MIG 1g.18gb" : "NVIDIA H200", size);
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *out, unsigned size) {
    ANY_DEVICE; uuid_of(s, d->index, out, size); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t d, unsigned *out) { DEVICE; *out = (unsigned)d->index; DONE(OK); }
EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t d, char *out, unsigned size) {
    DEVICE; copy(out, "1650000000002", size); DONE(OK);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out) {
    SYSTEM(1);
    for (int i = 0; i < MAX_GPUS * (1 + MAX_MIGS); i++) {
        char text[96];
        if (gpu_of(i) >= gpu_count(s) || (is_mig(i) && slot_of(i) >= mig_count(s, gpu_of(i)))) continue;
        uuid_of(s, i, text, sizeof text);
        if (!strcmp(text, uuid)) { *out = &devices[i]; DONE(OK); }
    }
    DONE(NOT_FOUND);
}

/* ---- MIG ---- */

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *x, unsigned *y) {
    DEVICE; *x = *y = in_mig_mode(s, d->index); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned *n) {
    DEVICE; *n = in_mig_mode(s, d->index) ? MAX_MIGS : 0; DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned slot, nvmlDevice_t *out) {
    DEVICE;
    if (!in_mig_mode(s, d->index)) DONE(NOT_SUPPORTED);
    if (slot >= (unsigned)mig_count(s, d->index)) DONE(NOT_FOUND);
    *out = &devices[MAX_GPUS + d->index * MAX_MIGS + (int)slot];
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t d, unsigned *out) {
    ANY_DEVICE; *out = (unsigned)is_mig(d->index); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t d, nvmlDevice_t *out) {
    ANY_DEVICE; if (!is_mig(d->index)) DONE(INVALID_ARGUMENT); *out = &devices[gpu_of(d->index)]; DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned *out) {
    ANY_DEVICE; if (!is_mig(d->index)) DONE(INVALID_ARGUMENT); *out = 7u + (unsigned)slot_of(d->index); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned *out) {
    ANY_DEVICE; if (!is_mig(d->index)) DONE(INVALID_ARGUMENT); *out = 0; DONE(OK);
}

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *out) {
    DEVICE;
    memset(out, 0, sizeof *out);
    out->device = 6 + (unsigned)d->index;
    out->pciDeviceId = 0x233510DE;
    out->pciSubSystemId = 0x18BF10DE;
    snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "0000:00:%02X.0", out->device);
    snprintf(out->busId, sizeof out->busId, "00000000:00:%02X.0", out->device);
    const char *t = text_at(s, d->index, "bus", 0);
    if (t) copy(out->busId, t, sizeof out->busId);
    DONE(OK);
}

/* ---- readings ---- */

#define READ_UINT(name, key, fallback) EXPORT nvmlReturn_t name(nvmlDevice_t d, unsigned *out) \
    { DEVICE; *out = (unsigned)number(s, d->index, key, fallback); DONE(OK); }
#define FIXED_UINT(name, value) EXPORT nvmlReturn_t name(nvmlDevice_t d, unsigned *out) { DEVICE; *out = (value); DONE(OK); }
#define FIXED_PAIR(name, a, b) EXPORT nvmlReturn_t name(nvmlDevice_t d, unsigned *x, unsigned *y) \
    { DEVICE; *x = (a); *y = (b); DONE(OK); }
#define NOT_HERE(name) EXPORT nvmlReturn_t name(nvmlDevice_t d) { DEVICE; DONE(NOT_SUPPORTED); }

typedef struct { unsigned gpu, memory; } nvmlUtilization_t;
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *out) {
    WHOLE_DEVICE;
    out->gpu = (unsigned)number(s, d->index, "util", 97);
    out->memory = (unsigned)number(s, d->index, "memory_util", out->gpu * 0.55);
    DONE(OK);
}

typedef struct { uint64_t total, free, used; } nvmlMemory_t;
typedef struct { unsigned version; uint64_t total, reserved, free, used; } nvmlMemory_v2_t;
static nvmlMemory_v2_t memory_of(const State *s, int gpu) {
    nvmlMemory_v2_t m;
    m.total = (uint64_t)number(s, gpu, "total_mib", is_mig(gpu) ? 18000 : 143771) << 20;
    m.reserved = (uint64_t)number(s, gpu, "reserved_mib", 615) << 20;
    m.used = (uint64_t)number(s, gpu, "used_mib", is_mig(gpu) ? 6000 : 43945) << 20;
    m.free = m.total - m.reserved - m.used;
    return m;
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *out) {
    ANY_DEVICE;
    if (out->version != (sizeof *out | 2u << 24)) DONE(VERSION_MISMATCH);
    unsigned version = out->version;
    *out = memory_of(s, d->index);
    out->version = version;
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *out) {
    ANY_DEVICE;
    nvmlMemory_v2_t m = memory_of(s, d->index);
    out->total = m.total;
    out->used = m.used + m.reserved; /* v1 counts the reserved block as used */
    out->free = m.free;
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t d, nvmlMemory_t *out) {
    DEVICE; out->total = 1ull << 38; out->used = 1703936; out->free = out->total - out->used; DONE(OK);
}

static double watts(const State *s, int gpu, double t) {
    double util = number_at(s, gpu, "util", 97, t);
    return number_at(s, gpu, "power_w", 77 + util * 5.5, t);
}
/* The first second after t from which a line of the state applies, at most `end`. */
static double next_change(const State *s, double t, double end) {
    for (int i = 0; i < s->n; i++)
        if (s->lines[i].at > t && s->lines[i].at < end) end = s->lines[i].at;
    return end;
}
static double mean_watts(const State *s, int gpu, double from, double to) {
    int waves = 0, steps = 1;
    for (int i = 0; i < s->n; i++) waves += s->lines[i].square;
    if (waves) steps += (int)fmin((to - from) / 0.01, 10000);
    double sum = 0;
    for (int k = 0; k < steps; k++) sum += watts(s, gpu, from + (to - from) * (k + 0.5) / steps);
    return sum / steps;
}
/* Joules since the driver was loaded: 2,569 J before second 0, then power times time from one line of the state to the next. */
static double joules(const State *s, int gpu) {
    double now = wall() - s->start, sum = 2569;
    for (double t = 0, next; t < now; t = next) {
        next = next_change(s, t, now);
        sum += (next - t) * mean_watts(s, gpu, t, next);
    }
    return number(s, gpu, "energy_j", sum);
}
EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *out) {
    DEVICE; *out = (unsigned)(watts(s, d->index, wall() - s->start) * 1000); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, uint64_t *out) {
    DEVICE; *out = (uint64_t)(joules(s, d->index) * 1000); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned *out) {
    DEVICE; *out = (unsigned)(number(s, d->index, "power_limit_w", 700) * 1000); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t d, unsigned *out) {
    DEVICE; *out = (unsigned)(number(s, d->index, "power_default_w", 700) * 1000); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t d, unsigned *out) {
    DEVICE; *out = (unsigned)(number(s, d->index, "power_limit_w", 700) * 1000); DONE(OK);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, unsigned sensor, unsigned *out) {
    DEVICE; if (sensor) DONE(INVALID_ARGUMENT); *out = (unsigned)number(s, d->index, "temperature", 49); DONE(OK);
}
typedef struct { unsigned version, sensor; int temperature; } nvmlTemperature_v1_t;
EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t d, nvmlTemperature_v1_t *out) {
    DEVICE;
    if (out->version != (sizeof *out | 1u << 24)) DONE(VERSION_MISMATCH);
    out->temperature = (int)number(s, d->index, "temperature", 49);
    DONE(OK);
}

static unsigned clock_of(const State *s, int gpu, unsigned type) {
    if (type == 2) return (unsigned)number(s, gpu, "memory_clock", 3201);
    if (type == 3) return (unsigned)number(s, gpu, "video_clock", 1545);
    return (unsigned)number(s, gpu, "sm_clock", 1965);
}
EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, unsigned type, unsigned *out) {
    DEVICE; if (type > 3) DONE(INVALID_ARGUMENT); *out = clock_of(s, d->index, type); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, unsigned type, unsigned *out) {
    DEVICE; if (type > 3) DONE(INVALID_ARGUMENT); *out = type == 2 ? 3201 : type == 3 ? 1545 : 1980; DONE(OK);
}
READ_UINT(nvmlDeviceGetPerformanceState, "pstate", 0)
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, uint64_t *out) {
    DEVICE; *out = (uint64_t)number(s, d->index, "reasons", 4); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, uint64_t *out) {
    DEVICE; *out = (uint64_t)number(s, d->index, "reasons", 4); DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t d, uint64_t *out) { DEVICE; *out = 511; DONE(OK); }
FIXED_PAIR(nvmlDeviceGetEncoderUtilization, 0, 100000)
FIXED_PAIR(nvmlDeviceGetDecoderUtilization, 0, 100000)
FIXED_PAIR(nvmlDeviceGetJpgUtilization, 0, 100000)
FIXED_PAIR(nvmlDeviceGetOfaUtilization, 0, 100000)
FIXED_PAIR(nvmlDeviceGetEccMode, 1, 1)
EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *x, int *y) { DEVICE; *x = 9; *y = 0; DONE(OK); }
READ_UINT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen", 5)
READ_UINT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max", 5)
READ_UINT(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_gen_gpu_max", 5)
READ_UINT(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 16)
READ_UINT(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", 16)
READ_UINT(nvmlDeviceGetPcieReplayCounter, "pcie_replays", 0)
FIXED_UINT(nvmlDeviceGetPersistenceMode, 1)
FIXED_UINT(nvmlDeviceGetComputeMode, 0)
FIXED_UINT(nvmlDeviceGetDisplayActive, 0)
FIXED_UINT(nvmlDeviceGetDisplayMode, 0)
FIXED_UINT(nvmlDeviceGetNumGpuCores, 16896)
FIXED_UINT(nvmlDeviceGetMemoryBusWidth, 6016)
NOT_HERE(nvmlDeviceGetFanSpeed)
NOT_HERE(nvmlDeviceGetDriverModel_v2)
EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t d, unsigned counter, unsigned *out) {
    DEVICE; usleep(20000); *out = counter ? 55689 : 13280; DONE(OK); /* it blocks for its 20 ms window */
}
EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, unsigned type, unsigned counter, uint64_t *out) {
    DEVICE;
    char key[40];
    snprintf(key, sizeof key, "ecc_%s_%s", counter ? "aggregate" : "volatile", type ? "uncorrected" : "corrected");
    *out = (uint64_t)number(s, d->index, key, 0);
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned *a, unsigned *b, unsigned *c, unsigned *e) {
    DEVICE;
    *a = (unsigned)number(s, d->index, "remap_correctable", 0);
    *b = (unsigned)number(s, d->index, "remap_uncorrectable", 0);
    *c = (unsigned)number(s, d->index, "remap_pending", 0);
    *e = (unsigned)number(s, d->index, "remap_failure", 0);
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t d, char *out, unsigned size) {
    DEVICE; copy(out, "96.00.A5.00.1A", size); DONE(OK);
}
typedef struct { uint64_t protectedKib, unprotectedKib; } nvmlConfComputeMemSizeInfo_t;
EXPORT nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t d, nvmlConfComputeMemSizeInfo_t *out) {
    DEVICE; memset(out, 0, sizeof *out); DONE(OK);
}

/* ---- what the driver kept between ticks, and field values ---- */

typedef union { double d; unsigned u; uint64_t ull; int64_t sll; int si; } nvmlValue_t;
typedef struct { uint64_t timeStamp; nvmlValue_t value; } nvmlSample_t;

/* Type 0: power in mW, 119 samples 20 ms apart. Types 1 and 2: utilisation in %, 71 samples 200 ms apart. */
EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t d, unsigned type, uint64_t last, unsigned *value_type,
                                         unsigned *count, nvmlSample_t *out) {
    WHOLE_DEVICE;
    const char *mode = text_at(s, d->index, "ring", wall() - s->start), *clock = text_at(s, -1, "ring_clock", 0);
    if (type > 2 || (mode && !strcmp(mode, "0"))) DONE(NOT_FOUND);
    int shuffled = mode && !strcmp(mode, "shuffled"), old = mode && !strcmp(mode, "old"), kept = type ? 71 : 119;
    double step = type ? 0.2 : 0.02, newest = floor(wall() / step) * step;
    unsigned n = 0;
    *value_type = 1;
    for (int i = kept - 1; i >= 0; i--) {
        double at = newest - i * step, t = at - s->start;
        uint64_t stamp = (uint64_t)((at - (clock && !strcmp(clock, "boot") ? wall() - boot() : 0)) * 1e6);
        if (stamp <= last && !shuffled && !old) continue;
        if (out && n < *count) {
            double util = number_at(s, d->index, "util", 97, t);
            out[n].timeStamp = stamp;
            out[n].value.ull = 0;
            out[n].value.u = (unsigned)(type == 0 ? watts(s, d->index, t) * 1000
                                        : type == 1 ? util : number_at(s, d->index, "memory_util", util * 0.55, t));
        }
        n++;
    }
    if (shuffled && out && n > 2) {  /* as drivers have been seen to do: unsorted, with an empty slot in front */
        nvmlSample_t swapped = out[1];
        out[1] = out[n - 1]; out[n - 1] = swapped;
        out[0].timeStamp = 0;
    }
    *count = n;
    DONE(n ? OK : NOT_FOUND);
}

typedef struct {
    unsigned fieldId, scopeId;
    int64_t timestamp, latencyUsec;
    unsigned valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;
/* A field that a device only has when the state says what it holds. */
static void fill(nvmlFieldValue_t *field, const State *s, int gpu, const char *key) {
    double value = number(s, gpu, key, -1);
    field->valueType = 1;
    if (value < 0) field->nvmlReturn = NOT_SUPPORTED;
    else field->value.u = (unsigned)value;
}
EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *f) {
    DEVICE;
    for (int i = 0; i < n; i++) {
        f[i].timestamp = (int64_t)(wall() * 1e6);
        f[i].latencyUsec = 5;
        f[i].nvmlReturn = OK;
        f[i].value.ull = 0;
        switch (f[i].fieldId) {
        case 82: f[i].valueType = 1; f[i].value.u = (unsigned)number(s, d->index, "memory_temperature", 47); break;
        case 83: f[i].valueType = 3; f[i].value.ull = (uint64_t)(joules(s, d->index) * 1000); break;
        case 185: case 186: f[i].valueType = 1; f[i].value.u = (unsigned)(watts(s, d->index, wall() - s->start) * 1000); break;
        case 74: f[i].valueType = 3; f[i].value.ull = (uint64_t)number(s, d->index, "power_cap_ns", 0); break;
        case 75: f[i].valueType = 3; f[i].value.ull = (uint64_t)number(s, d->index, "thermal_ns", 0); break;
        case 269: f[i].valueType = 3; f[i].value.ull = (uint64_t)number(s, d->index, "sw_thermal_ns", 0); break;
        case 270: f[i].valueType = 3; f[i].value.ull = (uint64_t)number(s, d->index, "hw_thermal_ns", 0); break;
        case 271: f[i].valueType = 3; f[i].value.ull = (uint64_t)number(s, d->index, "power_brake_ns", 0); break;
        case 29: fill(&f[i], s, d->index, "retired_sbe"); break;
        case 30: fill(&f[i], s, d->index, "retired_dbe"); break;
        case 31: fill(&f[i], s, d->index, "retired_pending"); break;
        case 230: f[i].valueType = 1; f[i].value.u = (unsigned)number(s, d->index, "recovery_action", 0); break;
        default: f[i].nvmlReturn = NOT_SUPPORTED;
        }
    }
    DONE(OK);
}

/* ---- GPM ---- */

typedef struct { double at; int gpu; } GpmSample;
typedef struct { const char *shortName, *longName, *unit; } nvmlGpmMetricInfo_t;
typedef struct { unsigned metricId; nvmlReturn_t nvmlReturn; double value; nvmlGpmMetricInfo_t info; } nvmlGpmMetric_t;
typedef struct { unsigned version, numMetrics; GpmSample *sample1, *sample2; nvmlGpmMetric_t metrics[]; } nvmlGpmMetricsGet_t;
typedef struct { unsigned version, isSupportedDevice; } nvmlGpmSupport_t;

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *out) {
    DEVICE;
    out->isSupportedDevice = number(s, d->index, "gpm", 1) > 0;
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlGpmSampleAlloc(GpmSample **out) { SYSTEM(1); *out = calloc(1, sizeof **out); DONE(OK); }
EXPORT nvmlReturn_t nvmlGpmSampleFree(GpmSample *sample) { SYSTEM(1); free(sample); DONE(OK); }
EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t d, GpmSample *out) {
    WHOLE_DEVICE;
    *out = (GpmSample){wall(), d->index};
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t d, unsigned instance, GpmSample *out) {
    DEVICE;
    if (instance < 7 || instance >= 7u + (unsigned)mig_count(s, d->index)) DONE(INVALID_ARGUMENT);
    *out = (GpmSample){wall(), MAX_GPUS + d->index * MAX_MIGS + (int)instance - 7};
    DONE(OK);
}
static const char *gpm_key(unsigned metric) {
    switch (metric) {
    case 1: return "util"; case 2: return "sm_active"; case 3: return "sm_occupancy"; case 5: return "tensor"; case 10: return "dram";
    case 20: return "pcie_tx"; case 21: return "pcie_rx"; case 60: return "nvlink_rx"; case 61: return "nvlink_tx";
    default: return NULL;
    }
}
EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get) {
    SYSTEM(1);
    if (get->version != 1) DONE(VERSION_MISMATCH);
    for (unsigned i = 0; i < get->numMetrics; i++) {
        nvmlGpmMetric_t *m = &get->metrics[i];
        const char *key = gpm_key(m->metricId);
        double fallback = m->metricId == 1 ? 97 : 0, sum = 0, from = get->sample1->at - s->start, to = get->sample2->at - s->start;
        for (int k = 0; key && k < 100; k++)
            sum += number_at(s, get->sample1->gpu, key, fallback, from + (to - from) * (k + 0.5) / 100);
        m->nvmlReturn = key ? OK : NOT_SUPPORTED;
        m->value = sum / 100;
    }
    DONE(OK);
}

/* ---- processes ---- */

typedef struct { unsigned pid; uint64_t used; unsigned gpuInstance, computeInstance; } nvmlProcessInfo_t;
static nvmlReturn_t list(const State *s, int gpu, const char *key, unsigned *count, nvmlProcessInfo_t *out) {
    const char *spec = text_at(s, gpu, key, wall() - s->start);
    unsigned n = 0, room = *count;
    for (const char *p = spec; p && *p >= '0' && *p <= '9'; p++) {
        char *end;
        unsigned pid = (unsigned)strtoul(p, &end, 10);
        if (*end != ':') break;
        uint64_t used = end[1] == '-' ? UINT64_MAX : (uint64_t)strtoul(end + 1, NULL, 10) << 20;
        if (out && n < room) out[n] = (nvmlProcessInfo_t){pid, used, 0xFFFFFFFF, 0xFFFFFFFF};
        n++;
        if (!(p = strchr(end, ','))) break;
    }
    *count = n;
    return n > room || (n && !out) ? INSUFFICIENT_SIZE : OK;
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *out) {
    ANY_DEVICE; DONE(list(s, d->index, "procs", count, out));
}
EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *out) {
    ANY_DEVICE; DONE(list(s, d->index, "graphics", count, out));
}
EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *out) {
    (void)out; DEVICE; *count = 0; DONE(OK);
}
typedef struct { unsigned pid; uint64_t timeStamp; unsigned sm, memory, encoder, decoder; } nvmlProcessSample_t;
/* What pid:value says of a process in the list `spec`; `fallback` where it says nothing. */
static unsigned value_of(const char *spec, unsigned pid, unsigned fallback) {
    for (const char *p = spec; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        unsigned its_pid, value;
        if (sscanf(p, "%u:%u", &its_pid, &value) == 2 && its_pid == pid) return value;
    }
    return fallback;
}
EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t d, nvmlProcessSample_t *out, unsigned *count, uint64_t last) {
    WHOLE_DEVICE;
    nvmlProcessInfo_t found[64];
    unsigned n = 64, room = *count;
    double now = wall();
    const char *spec = text_at(s, d->index, "proc_util", now - s->start);
    uint64_t stamp = (uint64_t)((now - (number(s, d->index, "proc_util_old", 0) > 0 ? 3600 : 0)) * 1e6);
    list(s, d->index, "procs", &n, found);
    *count = n;
    if (!n || stamp <= last) DONE(NOT_FOUND);
    if (!out || room < n) DONE(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < n; i++)
        out[i] = (nvmlProcessSample_t){found[i].pid, stamp, value_of(spec, found[i].pid, 24), 11, 0, 0};
    DONE(OK);
}

/* ---- Xid events ---- */

typedef struct { uint64_t types[MAX_GPUS]; double seen; int seen_line; } EventSet; /* the last Xid given out */
typedef struct { nvmlDevice_t device; uint64_t type, data; unsigned gpuInstance, computeInstance; } nvmlEventData_t;

EXPORT nvmlReturn_t nvmlEventSetCreate(EventSet **set) {
    SYSTEM(1);
    *set = calloc(1, sizeof **set);
    (*set)->seen = -1e17; /* an Xid from before the registration is not delivered: see RegisterEvents */
    DONE(OK);
}
EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, uint64_t *out) { DEVICE; *out = 0xFF9F; DONE(OK); }
EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, uint64_t types, EventSet *set) {
    DEVICE;
    set->types[d->index] |= types;
    set->seen = wall() - s->start;
    set->seen_line = s->n;
    DONE(OK);
}
/* The first Xid after the last one given out; of several at one moment, in the order of their lines. */
static int next_xid(const State *s, EventSet *set, double now, nvmlEventData_t *out) {
    const Line *first = NULL;
    int gpu = -1, its_gpu;
    for (int i = 0; i < s->n; i++) {
        const Line *l = &s->lines[i];
        if (sscanf(l->key, "gpu%d", &its_gpu) != 1 || !strstr(l->key, ".xid")) continue;
        if (l->at < set->seen || (l->at == set->seen && i <= set->seen_line)) continue;
        if (l->at > now || !(set->types[its_gpu] & 8) || (first && l->at >= first->at)) continue;
        first = l;
        gpu = its_gpu;
    }
    if (!first) return 0;
    set->seen = first->at;
    set->seen_line = (int)(first - s->lines);
    *out = (nvmlEventData_t){&devices[gpu], 8, strtoull(first->value, NULL, 10), 0xFFFFFFFF, 0xFFFFFFFF};
    return 1;
}
EXPORT nvmlReturn_t nvmlEventSetWait_v2(EventSet *set, nvmlEventData_t *out, unsigned timeout_ms) {
    double until = wall() + timeout_ms / 1000.0;
    do {
        SYSTEM(1);
        int found = next_xid(s, set, wall() - s->start, out);
        drop(s);
        if (found) return OK;
        usleep(20000);
    } while (wall() < until);
    return TIMEOUT;
}
EXPORT nvmlReturn_t nvmlEventSetFree(EventSet *set) { SYSTEM(1); free(set); DONE(OK); }
