// A program that dies in the way that its argument names, after it has installed the crash line.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "CPlatformCrash.h"

static volatile int zero, one = 1;

// What CrashLine.c is compiled with in place of backtrace(3): it crashes at every call but the first.
int broken_backtrace(void **frames, int count) {
    static int calls;
    (void)frames;
    (void)count;
    if (calls++ > 0) *(volatile int *)(long)zero = 1;
    return 0;
}

__attribute__((noinline)) static int overflow(int depth) {
    volatile char room[4096];
    room[depth % 4096] = (char)depth;
    return overflow(depth + 1) + room[0];
}

__attribute__((noinline)) void write_to_nothing(void) { *(volatile int *)(long)(zero + 64) = 1; }

static void *overflow_on_a_thread(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "odd \"name\"\n");
    void *stack = CPlatform_begin_crash_stack();
    overflow(0);
    CPlatform_end_crash_stack(stack);
    return NULL;
}

static void *crash_on_a_thread(void *barrier) {
    pthread_barrier_wait(barrier);
    write_to_nothing();
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    const char *way = arguments[1];
    CPlatform_install_crash_line(STDOUT_FILENO, "1.2.3", strcmp(arguments[2], "json") == 0);
    if (strcmp(way, "null") == 0) write_to_nothing();
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "divide") == 0) return one / zero;
    if (strcmp(way, "trap") == 0) __builtin_trap();
    if (strcmp(way, "nowhere") == 0) ((void (*)(void))0x1234)();
    if (strcmp(way, "stack") == 0) return overflow(0);
    if (strcmp(way, "half") == 0) {
        CPlatform_set_log_busy(true);
        (void)!write(STDOUT_FILENO, "half a li", 9);
        write_to_nothing();
    }
    if (strcmp(way, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, overflow_on_a_thread, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(way, "many") == 0) {
        pthread_barrier_t barrier;
        pthread_barrier_init(&barrier, NULL, 8);
        pthread_t thread;
        for (int index = 0; index < 8; index++) pthread_create(&thread, NULL, crash_on_a_thread, &barrier);
        for (;;) pause();
    }
    return 3;
}
