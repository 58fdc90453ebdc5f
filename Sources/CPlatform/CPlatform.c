#define _GNU_SOURCE
#include "CPlatform.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

int CPlatform_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int CPlatform_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int CPlatform_signalfd(const int *signals, size_t count) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t index = 0; index < count; index++) sigaddset(&set, signals[index]);
    int error = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int CPlatform_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int CPlatform_accept(int descriptor, struct sockaddr *peer, socklen_t *length) {
    return accept4(descriptor, peer, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int CPlatform_bind(int descriptor, const struct sockaddr *address, socklen_t length) {
    return bind(descriptor, address, length);
}

int CPlatform_connect(int descriptor, const struct sockaddr *address, socklen_t length) {
    return connect(descriptor, address, length);
}

int CPlatform_getsockname(int descriptor, struct sockaddr *address, socklen_t *length) {
    return getsockname(descriptor, address, length);
}

int CPlatform_peer_process(int descriptor, uint32_t *user, int32_t *process) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(descriptor, (struct sockaddr *)&address, &length) != 0) return -1;
    if (address.ss_family != AF_UNIX) return -1;
    struct ucred credentials;
    length = sizeof credentials;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return -1;
    *user = credentials.uid;
    *process = credentials.pid;
    return 0;
}

int CPlatform_shutdown(int descriptor) { return shutdown(descriptor, SHUT_RDWR); }

int CPlatform_shutdown_write(int descriptor) { return shutdown(descriptor, SHUT_WR); }

ssize_t CPlatform_receive(int descriptor, void *bytes, size_t count) {
    return syscall(SYS_recvfrom, descriptor, bytes, count, 0, NULL, NULL);
}

ssize_t CPlatform_peek(int descriptor, void *bytes, size_t count) {
    return recv(descriptor, bytes, count, MSG_PEEK);
}

ssize_t CPlatform_send(int descriptor, const void *bytes, size_t count) {
    return syscall(SYS_sendto, descriptor, bytes, count, MSG_NOSIGNAL, NULL, 0);
}

ssize_t CPlatform_send2(
    int descriptor, const void *first, size_t firstCount, const void *second, size_t secondCount
) {
    struct iovec vectors[2] = {{(void *)first, firstCount}, {(void *)second, secondCount}};
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = 2};
    return sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

int CPlatform_open(const char *path, int flags, unsigned mode) { return open(path, flags, mode); }

int CPlatform_reserve(int descriptor, int64_t bytes) {
    return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, bytes);
}

uint32_t CPlatform_file_system_magic(int descriptor) {
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 ? (uint32_t)status.f_type : 0;
}

int64_t CPlatform_free_bytes(int descriptor) {
    struct statfs status;
    // A tmpfs without a limit has no blocks at all.
    if (fstatfs(descriptor, &status) != 0 || status.f_blocks == 0) return INT64_MAX;
    int64_t bytes;
    return __builtin_mul_overflow(status.f_bfree, status.f_bsize, &bytes) ? INT64_MAX : bytes;
}

int64_t CPlatform_file_size_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > INT64_MAX) return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}

char **CPlatform_environment(void) { return environ; }

int CPlatform_usable_processors(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

uint64_t CPlatform_descriptor_limit(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

uint64_t CPlatform_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

void CPlatform_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

void CPlatform_release_free_pages(void) { malloc_trim(0); }

void CPlatform_ignore_write_signals(void) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int CPlatform_query_name(const char *name, int type, unsigned char *answer, int capacity) {
    struct __res_state state;
    memset(&state, 0, sizeof state);
    if (res_ninit(&state) != 0) return -1;
    int length = res_nsearch(&state, name, ns_c_in, type, answer, capacity);
    res_nclose(&state);
    return length > capacity ? capacity : length;
}

const char *CPlatform_strerror(int error) { return strerrordesc_np(error); }
