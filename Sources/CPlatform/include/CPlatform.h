#ifndef CPLATFORM_H
#define CPLATFORM_H

// Linux interfaces that Swift's Glibc module does not export, and the constants whose C types Swift
// would import awkwardly.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const uint32_t CPlatform_EPOLLIN = EPOLLIN;
static const uint32_t CPlatform_EPOLLOUT = EPOLLOUT;
static const uint32_t CPlatform_EPOLLRDHUP = EPOLLRDHUP;
static const uint32_t CPlatform_EPOLLHUP = EPOLLHUP;
static const uint32_t CPlatform_EPOLLERR = EPOLLERR;
static const uint32_t CPlatform_EPOLLET = EPOLLET;
static const uint32_t CPlatform_EPOLLEXCLUSIVE = EPOLLEXCLUSIVE;

#endif
