#ifndef CPLATFORM_H
#define CPLATFORM_H

// Linux interfaces that Swift's Glibc module does not export, or that need GNU extensions,
// variadics or macros.

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "CPlatformCrash.h"
#include "CPlatformTLS.h"

// EPOLL_EVENTS is an enum whose operators Swift does not have, and EPOLLET overflows it.
static const uint32_t CPlatform_EPOLLIN = EPOLLIN;
static const uint32_t CPlatform_EPOLLOUT = EPOLLOUT;
static const uint32_t CPlatform_EPOLLRDHUP = EPOLLRDHUP;
static const uint32_t CPlatform_EPOLLHUP = EPOLLHUP;
static const uint32_t CPlatform_EPOLLERR = EPOLLERR;
static const uint32_t CPlatform_EPOLLET = 1u << 31;
static const uint32_t CPlatform_EPOLLEXCLUSIVE = 1u << 28;

int CPlatform_epoll_create(void);
int CPlatform_eventfd(void);
int CPlatform_signalfd(const int *signals, size_t count);

int CPlatform_socket(int family);
int CPlatform_accept(int descriptor, struct sockaddr *peer, socklen_t *length);
int CPlatform_bind(int descriptor, const struct sockaddr *address, socklen_t length);
int CPlatform_connect(int descriptor, const struct sockaddr *address, socklen_t length);
int CPlatform_getsockname(int descriptor, struct sockaddr *address, socklen_t *length);
// Whose process is at the other end of a local socket (SO_PEERCRED); -1 for other sockets.
int CPlatform_peer_process(int descriptor, uint32_t *user, int32_t *process);

int CPlatform_shutdown(int descriptor);
int CPlatform_shutdown_write(int descriptor);

// The system calls themselves: glibc's send and recv are cancellation points, which costs a process with threads
// two atomic operations a call.
ssize_t CPlatform_receive(int descriptor, void *bytes, size_t count);
ssize_t CPlatform_peek(int descriptor, void *bytes, size_t count);
ssize_t CPlatform_send(int descriptor, const void *bytes, size_t count);

// One system call for a head and the content behind it; Swift would have to build the vectors on
// the heap.
ssize_t CPlatform_send2(
    int descriptor, const void *first, size_t firstCount, const void *second, size_t secondCount);

int CPlatform_open(const char *path, int flags, unsigned mode);

// Takes disk space for the first bytes of a file and leaves its size alone: fallocate(2) itself.
int CPlatform_reserve(int descriptor, int64_t bytes);

// What kind of file system a descriptor is on (statfs(2)); 0 when nobody knows.
uint32_t CPlatform_file_system_magic(int descriptor);

// Bytes that are free on a descriptor's file system (statfs(2)); INT64_MAX when nobody knows.
int64_t CPlatform_free_bytes(int descriptor);

// How long a file may be (RLIMIT_FSIZE); INT64_MAX without a limit.
int64_t CPlatform_file_size_limit(void);

// The environment (environ(7)): a variable that Swift takes for a race. Nothing here changes it.
char **CPlatform_environment(void);

int CPlatform_usable_processors(void);

// How many descriptors the process may have (RLIMIT_NOFILE); 0 when that is not known.
uint64_t CPlatform_descriptor_limit(void);

// Raises the soft limit of descriptors to the hard one; returns what it is then.
uint64_t CPlatform_raise_descriptor_limit(void);

// Names the calling thread for ps and top; at most 15 bytes.
void CPlatform_name_thread(const char *name);

void CPlatform_release_free_pages(void);

// Lets go of code and constants that are in memory; what is used again is mapped again.
void CPlatform_release_code_pages(void);

void CPlatform_ignore_write_signals(void);

// Asks the system's name servers for records of `type` (res_nsearch(3)): the bytes of the answer, at most `capacity`,
// or -1. Blocks; safe on any thread, for the state is its own.
int CPlatform_query_name(const char *name, int type, unsigned char *answer, int capacity);

// glibc's table is immutable and, unlike strerror, safe on any thread. NULL for an unknown number.
const char *CPlatform_strerror(int error);

#endif
