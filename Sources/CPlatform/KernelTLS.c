#include "CPlatformTLS.h"

#include <endian.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifndef SOL_TLS
#define SOL_TLS 282
#endif

enum { HEADER = 5, TAG = 16, CONTENT_TYPE = 1, EXPLICIT_NONCE = 8, SEQUENCE = 8 };

// OpenSSL hands over a union with the size behind it; where that is depends on how it was built, so the size follows
// from the kind alone.
static socklen_t keys_size(const struct tls_crypto_info *info) {
    switch (info->cipher_type) {
    case TLS_CIPHER_AES_GCM_128: return sizeof(struct tls12_crypto_info_aes_gcm_128);
    case TLS_CIPHER_AES_GCM_256: return sizeof(struct tls12_crypto_info_aes_gcm_256);
    case TLS_CIPHER_CHACHA20_POLY1305: return sizeof(struct tls12_crypto_info_chacha20_poly1305);
    default: return 0;
    }
}

// Every kind ends with the number of the next record.
static uint64_t next_sequence(const void *keys, socklen_t size) {
    uint64_t sequence;
    memcpy(&sequence, (const char *)keys + size - SEQUENCE, SEQUENCE);
    return be64toh(sequence);
}

int CPlatform_attach_tls(int descriptor) {
    return setsockopt(descriptor, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls"));
}

int CPlatform_start_tls(int descriptor, const void *keys) {
    socklen_t size = keys_size(keys);
    if (size == 0) {
        errno = EINVAL;
        return -1;
    }
    return setsockopt(descriptor, SOL_TLS, TLS_TX, keys, size);
}

int CPlatform_tls_overhead(const void *keys, uint64_t *sequence) {
    const struct tls_crypto_info *info = keys;
    socklen_t size = keys_size(info);
    if (size == 0) return -1;
    *sequence = next_sequence(keys, size);
    if (info->version == TLS_1_3_VERSION) return HEADER + CONTENT_TYPE + TAG;
    if (info->version != TLS_1_2_VERSION) return -1;
    return info->cipher_type == TLS_CIPHER_CHACHA20_POLY1305 ? HEADER + TAG
                                                              : HEADER + EXPLICIT_NONCE + TAG;
}

ssize_t CPlatform_send_record(int descriptor, uint8_t type, const void *bytes, size_t count) {
    struct iovec vector = {(void *)bytes, count};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(type))];
    } control;
    memset(&control, 0, sizeof(control));
    struct msghdr message = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = CMSG_LEN(sizeof(type)),
    };
    control.header.cmsg_level = SOL_TLS;
    control.header.cmsg_type = TLS_SET_RECORD_TYPE;
    control.header.cmsg_len = CMSG_LEN(sizeof(type));
    *CMSG_DATA(&control.header) = type;
    return sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

int CPlatform_tls_sequence(int descriptor, uint64_t *sequence) {
    union {
        struct tls_crypto_info info;
        struct tls12_crypto_info_aes_gcm_128 gcm128;
        struct tls12_crypto_info_aes_gcm_256 gcm256;
        struct tls12_crypto_info_chacha20_poly1305 chacha;
    } keys;
    socklen_t size = sizeof(keys.info);
    if (getsockopt(descriptor, SOL_TLS, TLS_TX, &keys, &size) != 0) return -1;
    size = keys_size(&keys.info);
    if (size == 0) {
        errno = EINVAL;
        return -1;
    }
    int result = getsockopt(descriptor, SOL_TLS, TLS_TX, &keys, &size);
    if (result == 0) *sequence = next_sequence(&keys, size);
    // The kernel tells the key, too.
    explicit_bzero(&keys, sizeof(keys));
    return result;
}

static int acknowledged(int descriptor, uint64_t *count) {
    struct tcp_info info;
    memset(&info, 0, sizeof(info));
    socklen_t size = sizeof(info);
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return -1;
    *count = info.tcpi_bytes_acked;
    return 0;
}

int CPlatform_stream_position(int descriptor, uint64_t *position) {
    // What is acknowledged between the two questions would be counted twice, or not at all.
    for (int tries = 0; tries < 4; tries++) {
        uint64_t before, after;
        int waiting = 0;
        if (acknowledged(descriptor, &before) != 0) return -1;
        if (ioctl(descriptor, SIOCOUTQ, &waiting) != 0) return -1;
        if (acknowledged(descriptor, &after) != 0) return -1;
        if (before == after) {
            *position = before + (uint64_t)waiting;
            return 0;
        }
    }
    errno = EAGAIN;
    return -1;
}
