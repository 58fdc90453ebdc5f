// Code that ran once: clean pages of the program's and its libraries' files, given back to the page cache.
#define _GNU_SOURCE
#include "CPlatform.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

// Of an entry of /proc/self/pagemap: the page is in memory, and it is a file's.
static const uint64_t isPresent = 1ull << 63, isOfFile = 1ull << 61;

// A page that is not the file's any more, because somebody patched it (a debugger, a profiler), stays.
static void releaseRange(int pagemap, uintptr_t start, uintptr_t end, uintptr_t page) {
    uint64_t entries[512];
    while (start < end) {
        size_t count = (end - start) / page;
        if (count > 512) count = 512;
        ssize_t got = pread(pagemap, entries, count * sizeof *entries, (off_t)(start / page * sizeof *entries));
        if (got < (ssize_t)sizeof *entries) return;
        count = (size_t)got / sizeof *entries;
        size_t index = 0;
        while (index < count) {
            size_t first = index;
            while (index < count && (entries[index] & isPresent) && (entries[index] & isOfFile)) index++;
            if (index > first) madvise((void *)(start + first * page), (index - first) * page, MADV_DONTNEED);
            else index++;
        }
        start += count * page;
    }
}

static int releaseObject(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[index];
        // What can be written to could be written to in between.
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
        uintptr_t start = info->dlpi_addr + segment->p_vaddr, end = start + segment->p_filesz;
        releaseRange(*(int *)context, (start + page - 1) / page * page, end / page * page, page);
    }
    return 0;
}

void CPlatform_release_code_pages(void) {
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return;
    dl_iterate_phdr(releaseObject, &pagemap);
    close(pagemap);
}
