#define _GNU_SOURCE
#include "CPlatformCrash.h"

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

// Everything below `crashed` runs in a signal handler of a process whose memory may be in any state: no allocation, no
// locks of our own, no stdio, only memory that was there before.

enum {
    FRAME_LIMIT = 48,
    MODULE_LIMIT = 32,
    LINE_SIZE = 4096,
    STACK_SIZE = 64 << 10,
    // How long the log may take the line, and how long all of it may take: whoever restarts the process waits.
    PATIENCE_MILLISECONDS = 1000,
    PATIENCE_SECONDS = 10,
};

// A file that is mapped and may hold code. Addresses are told relative to `base`, as the file itself has them, so that
// they mean the same wherever it was mapped.
struct module {
    uintptr_t base, start, end;
    char name[40];
};

struct line {
    char bytes[LINE_SIZE];
    size_t count;
};

static const struct {
    int number;
    const char *name;
} signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGFPE, "SIGFPE"},
};

static struct module modules[MODULE_LIMIT];
static int moduleCount;
static char version[64];
static int logDescriptor = STDERR_FILENO;
static atomic_bool isInstalled;
static atomic_bool isJSON;
static atomic_bool isLogBusy;

static struct line report;
// The thread that crashed first, which alone writes, and of what.
static atomic_int reporter;
static siginfo_t reported;
static uintptr_t reportedCounter;
static atomic_bool hasFailedToTell;

// MARK: Before

// Leaves nothing that needs escaping in JSON.
static void copyName(char *target, size_t size, const char *name) {
    size_t index = 0;
    for (; name[index] != 0 && index + 1 < size; index++) {
        char byte = name[index];
        target[index] = byte >= ' ' && byte < 0x7F && byte != '"' && byte != '\\' ? byte : '_';
    }
    target[index] = 0;
}

static void copyFileName(char *target, size_t size, const char *path) {
    const char *slash = strrchr(path, '/');
    copyName(target, size, slash != NULL ? slash + 1 : path);
    // Spaces are between addresses.
    for (char *byte = target; *byte != 0; byte++) {
        if (*byte == ' ') *byte = '_';
    }
}

static int noteModule(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    (void)context;
    if (moduleCount == MODULE_LIMIT) return 1;
    struct module *module = &modules[moduleCount];
    module->base = info->dlpi_addr;
    module->start = UINTPTR_MAX;
    module->end = 0;
    for (int index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[index];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0) continue;
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (start < module->start) module->start = start;
        if (start + segment->p_memsz > module->end) module->end = start + segment->p_memsz;
    }
    if (module->end == 0) return 0;
    // The program itself has no name here.
    bool isProgram = info->dlpi_name == NULL || info->dlpi_name[0] == 0;
    copyFileName(module->name, sizeof module->name, isProgram ? program_invocation_name : info->dlpi_name);
    moduleCount++;
    return 0;
}

static void crashed(int number, siginfo_t *info, void *context);

void CPlatform_install_crash_line(int descriptor, const char *text, bool isJSONLog) {
    logDescriptor = descriptor;
    strncpy(version, text, sizeof version - 1);
    isJSON = isJSONLog;
    dl_iterate_phdr(noteModule, NULL);
    // The first call may load a library and allocate; no later one does.
    void *frames[2];
    backtrace(frames, 2);
    isInstalled = true;
    (void)CPlatform_begin_crash_stack();
    for (size_t index = 0; index < sizeof signals / sizeof *signals; index++) {
        struct sigaction before, action = {.sa_sigaction = crashed};
        if (sigaction(signals[index].number, NULL, &before) != 0 || before.sa_handler != SIG_DFL) continue;
        // Not deferred: a crash of the handler itself has to come back to it.
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        sigaction(signals[index].number, &action, NULL);
    }
}

void CPlatform_set_crash_format(bool isJSONLog) { isJSON = isJSONLog; }

void CPlatform_set_log_busy(bool isBusy) { isLogBusy = isBusy; }

void *CPlatform_begin_crash_stack(void) {
    if (!isInstalled) return NULL;
    void *memory = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    stack_t stack = {.ss_sp = memory, .ss_size = STACK_SIZE};
    if (sigaltstack(&stack, NULL) == 0) return memory;
    munmap(memory, STACK_SIZE);
    return NULL;
}

void CPlatform_end_crash_stack(void *memory) {
    if (memory == NULL) return;
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    munmap(memory, STACK_SIZE);
}

// MARK: The line

static void append(struct line *line, const char *text) {
    // One byte stays free for the line feed.
    for (; *text != 0 && line->count + 1 < LINE_SIZE; text++) line->bytes[line->count++] = *text;
}

static void appendDecimal(struct line *line, uint64_t value, int digits) {
    char text[24];
    size_t index = sizeof text;
    text[--index] = 0;
    do {
        text[--index] = '0' + value % 10;
        value /= 10;
        digits--;
    } while ((value > 0 || digits > 0) && index > 0);
    append(line, text + index);
}

static void appendHexadecimal(struct line *line, uintptr_t value) {
    char text[24];
    size_t index = sizeof text;
    text[--index] = 0;
    do {
        text[--index] = "0123456789abcdef"[value & 0xF];
        value >>= 4;
    } while (value > 0);
    text[--index] = 'x';
    text[--index] = '0';
    append(line, text + index);
}

static void appendTime(struct line *line) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t days = now.tv_sec / 86400, seconds = now.tv_sec % 86400;
    // Days to a date of the Gregorian calendar, years beginning in March (Hinnant's algorithm).
    int64_t shifted = days + 719468, era = shifted / 146097, dayOfEra = shifted % 146097;
    int64_t yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146096) / 365;
    int64_t dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100);
    int64_t monthFromMarch = (5 * dayOfYear + 2) / 153;
    int64_t month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
    appendDecimal(line, yearOfEra + era * 400 + (month <= 2), 4);
    append(line, "-");
    appendDecimal(line, month, 2);
    append(line, "-");
    appendDecimal(line, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1, 2);
    append(line, "T");
    appendDecimal(line, seconds / 3600, 2);
    append(line, ":");
    appendDecimal(line, seconds / 60 % 60, 2);
    append(line, ":");
    appendDecimal(line, seconds % 60, 2);
    append(line, ".");
    appendDecimal(line, now.tv_nsec / 1000000, 3);
    append(line, "Z");
}

// What stands before a value, and `"` behind it in JSON. Values need quotes as text only where they have spaces.
static void beginField(struct line *line, const char *name, bool hasSpaces) {
    if (isJSON) {
        append(line, ",\"");
        append(line, name);
        append(line, "\":\"");
    } else {
        append(line, " ");
        append(line, name);
        append(line, hasSpaces ? "=\"" : "=");
    }
}

static void endField(struct line *line, bool hasSpaces) {
    if (isJSON || hasSpaces) append(line, "\"");
}

static void appendField(struct line *line, const char *name, const char *value, bool hasSpaces) {
    beginField(line, name, hasSpaces);
    append(line, value);
    endField(line, hasSpaces);
}

static void appendNumber(struct line *line, const char *name, uint64_t value) {
    append(line, isJSON ? ",\"" : " ");
    append(line, name);
    append(line, isJSON ? "\":" : "=");
    appendDecimal(line, value, 1);
}

static const char *nameOf(int number) {
    for (size_t index = 0; index < sizeof signals / sizeof *signals; index++) {
        if (signals[index].number == number) return signals[index].name;
    }
    return "unknown";
}

static void appendHead(struct line *line, pid_t thread) {
    const siginfo_t *info = &reported;
    char name[40] = "", raw[17] = "";
    prctl(PR_GET_NAME, raw);
    copyName(name, sizeof name, raw);
    if (isLogBusy) append(line, "\n");
    append(line, isJSON ? "{\"ts\":\"" : "ts=");
    appendTime(line);
    if (isJSON) append(line, "\"");
    appendField(line, "level", "error", false);
    appendField(line, "msg", "the process crashed", true);
    appendField(line, "signal", nameOf(info->si_signo), false);
    if (info->si_code > 0) {
        beginField(line, "address", false);
        appendHexadecimal(line, (uintptr_t)info->si_addr);
        endField(line, false);
    } else if (info->si_pid != getpid()) {
        appendNumber(line, "sent_by_pid", (uint64_t)info->si_pid);
    }
    appendField(line, "thread", name, true);
    appendNumber(line, "thread_id", (uint64_t)thread);
    appendNumber(line, "pid", (uint64_t)getpid());
    appendField(line, "version", version, false);
}

static void appendAddress(struct line *line, uintptr_t address) {
    for (int index = 0; index < moduleCount; index++) {
        const struct module *module = &modules[index];
        if (address < module->start || address >= module->end) continue;
        append(line, module->name);
        append(line, "+");
        appendHexadecimal(line, address - module->base);
        return;
    }
    appendHexadecimal(line, address);
}

static uintptr_t programCounter(const void *context) {
#if defined(__x86_64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static void appendFrames(struct line *line, uintptr_t counter) {
    void *frames[FRAME_LIMIT];
    // Not promised to be safe in a handler, but it neither allocates nor locks anything of ours once it has run
    // before. It crashes itself where the stack leads nowhere; should it hang, an alarm ends the process.
    int count = backtrace(frames, FRAME_LIMIT);
    // The first ones are this handler's and the kernel's.
    int first = 0;
    while (first < count && (uintptr_t)frames[first] != counter) first++;
    beginField(line, "frames", true);
    appendAddress(line, counter);
    for (int index = first < count ? first + 1 : 0; index < count; index++) {
        append(line, " ");
        // A return address is behind the call; what it belongs to is in front of it.
        appendAddress(line, (uintptr_t)frames[index] - 1);
    }
    endField(line, true);
}

// MARK: The end

static bool writeAll(int descriptor, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(descriptor, bytes, count);
        if (written > 0) {
            bytes += written;
            count -= (size_t)written;
        } else if (written == 0 || (errno != EINTR && errno != EAGAIN)) {
            return false;
        } else if (errno == EAGAIN) {
            struct pollfd full = {.fd = descriptor, .events = POLLOUT};
            if (poll(&full, 1, PATIENCE_MILLISECONDS) <= 0) return false;
        }
    }
    return true;
}

static void tell(struct line *line) {
    append(line, isJSON ? "}" : "");
    line->bytes[line->count++] = '\n';
    struct pollfd full = {.fd = logDescriptor, .events = POLLOUT};
    // A pipe that nobody reads would hold a process that is to be restarted.
    if (poll(&full, 1, PATIENCE_MILLISECONDS) > 0 && writeAll(logDescriptor, line->bytes, line->count)) return;
    (void)writeAll(STDERR_FILENO, line->bytes, line->count);
}

static void end(int number) __attribute__((noreturn));
static void end(int number) {
    signal(number, SIG_DFL);
    syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), number);
    // The first process of a container has no default action for its own signals.
    _exit(128 + number);
}

static void crashed(int number, siginfo_t *info, void *context) {
    int thread = (int)syscall(SYS_gettid);
    int nobody = 0;
    if (atomic_compare_exchange_strong(&reporter, &nobody, thread)) {
        alarm(PATIENCE_SECONDS);
        reported = *info;
        reportedCounter = programCounter(context);
        appendHead(&report, thread);
        size_t headLength = report.count;
        appendFrames(&report, reportedCounter);
        // Whole, or not at all: half a line is not JSON.
        if (report.count + 2 >= LINE_SIZE) report.count = headLength;
        tell(&report);
        end(number);
    }
    // Another thread is at it, and will end this one too.
    while (nobody != thread) pause();
    // The handler itself crashed: what it has so far may be half a field, so begin anew and leave the callers out.
    if (!atomic_exchange(&hasFailedToTell, true)) {
        report.count = 0;
        appendHead(&report, thread);
        beginField(&report, "frames", true);
        appendAddress(&report, reportedCounter);
        endField(&report, true);
        tell(&report);
    }
    end(reported.si_signo);
}
