#ifndef CPLATFORM_TLS_H
#define CPLATFORM_TLS_H

// TLS that the kernel does for a TCP socket (networking/tls in the kernel's documentation).

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// What "keys" below is: one of the kernel's tls12_crypto_info_... structures, which say themselves which one.

// setsockopt(TCP_ULP): prepares a socket. ENOTCONN says that the kernel could, were the socket connected.
int CPlatform_attach_tls(int descriptor);

// setsockopt(TLS_TX): from now on the kernel seals what is sent. EINVAL for keys of a kind that is not known here.
int CPlatform_start_tls(int descriptor, const void *keys);

// The bytes that the kernel adds to the content of each record, and the number of the first one; -1 for keys of a kind
// that is not known here.
int CPlatform_tls_overhead(const void *keys, uint64_t *sequence);

// sendmsg(2): one record of another type than application data, without SIGPIPE.
ssize_t CPlatform_send_record(int descriptor, uint8_t type, const void *bytes, size_t count);

// getsockopt(TLS_TX): the number of the record that the kernel seals next.
int CPlatform_tls_sequence(int descriptor, uint64_t *sequence);

// TCP_INFO, SIOCOUTQ: how many bytes TCP was given since the connection began, but for a constant. EAGAIN when it is
// changing.
int CPlatform_stream_position(int descriptor, uint64_t *position);

#endif
