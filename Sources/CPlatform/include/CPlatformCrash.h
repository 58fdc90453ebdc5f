#ifndef CPLATFORM_CRASH_H
#define CPLATFORM_CRASH_H

// One line in the log when the process dies of a signal that nobody asked for (docs/decisions/0086-crash-line.md).

#include <stdbool.h>

// Has SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT and SIGFPE write a line to `descriptor` before they end the process as
// they would have anyway. Signals that have a handler already are left to it. Call it once, before other threads start.
// `version` is copied, up to 63 bytes of it, and must need no escaping.
void CPlatform_install_crash_line(int descriptor, const char *version, bool isJSON);

// From now on the line is JSON, or name=value.
void CPlatform_set_crash_format(bool isJSON);

// The log is about to write, or has written whole lines: a crash line in between must not glue itself to half a line.
void CPlatform_set_log_busy(bool isBusy);

// Gives the calling thread a stack for the handler, so that a thread whose own stack is used up can still tell; NULL
// when there is no memory, or no handler.
void *CPlatform_begin_crash_stack(void);

// Takes it away again, before the thread ends.
void CPlatform_end_crash_stack(void *stack);

#endif
