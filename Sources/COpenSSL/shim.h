#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Function-like macros are not imported by Swift; each shim below wraps exactly one of them.
static inline long COpenSSL_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
    return SSL_set_tlsext_host_name(ssl, name);
}
static inline long COpenSSL_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return SSL_CTX_set_min_proto_version(context, version);
}
static inline long COpenSSL_SSL_CTX_set_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_mode(context, mode);
}
static const uint64_t COpenSSL_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;
static const uint64_t COpenSSL_SSL_OP_ENABLE_KTLS = SSL_OP_ENABLE_KTLS;
static const uint64_t COpenSSL_SSL_OP_NO_COMPRESSION = SSL_OP_NO_COMPRESSION;
static const uint64_t COpenSSL_SSL_OP_CIPHER_SERVER_PREFERENCE = SSL_OP_CIPHER_SERVER_PREFERENCE;
static const uint64_t COpenSSL_SSL_OP_PRIORITIZE_CHACHA = SSL_OP_PRIORITIZE_CHACHA;
static inline long COpenSSL_SSL_CTX_set_read_ahead(SSL_CTX *context, int isOn) {
    return SSL_CTX_set_read_ahead(context, isOn);
}
static inline long COpenSSL_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_session_cache_mode(context, mode);
}
static inline long COpenSSL_SSL_CTX_set1_groups_list(SSL_CTX *context, const char *list) {
    return SSL_CTX_set1_groups_list(context, list);
}
static inline long COpenSSL_SSL_CTX_set_tlsext_servername_callback(
    SSL_CTX *context, int (*callback)(SSL *, int *, void *)) {
    return SSL_CTX_set_tlsext_servername_callback(context, callback);
}
static inline long COpenSSL_SSL_CTX_set_tlsext_status_cb(
    SSL_CTX *context, int (*callback)(SSL *, void *)) {
    return SSL_CTX_set_tlsext_status_cb(context, callback);
}
// OpenSSL takes over the copy; 0 when there is no memory.
static inline int COpenSSL_SSL_set_ocsp_response(SSL *ssl, const void *bytes, size_t count) {
    void *copy = OPENSSL_memdup(bytes, count);
    return copy != NULL && SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)count) == 1;
}
static inline int COpenSSL_EVP_MAC_CTX_set_HMAC_SHA256(
    EVP_MAC_CTX *context, const void *key, size_t count) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, count),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, "SHA256", 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(context, parameters);
}
static const unsigned long COpenSSL_XN_FLAG_RFC2253 = XN_FLAG_RFC2253;
static const unsigned long COpenSSL_ERR_SYSTEM_FLAG = ERR_SYSTEM_FLAG;
static inline EVP_PKEY *COpenSSL_EVP_RSA_gen(unsigned int bits) {
    return EVP_RSA_gen(bits);
}

// OpenSSL 3 deprecates these three for the EVP interface, whose context costs more than hashing a
// short input does. The pragma keeps the deprecation out of Swift, where warnings are errors.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static inline void COpenSSL_SHA256_Init(SHA256_CTX *context) {
    SHA256_Init(context);
}
static inline void COpenSSL_SHA256_Update(SHA256_CTX *context, const void *bytes, size_t count) {
    SHA256_Update(context, bytes, count);
}
static inline void COpenSSL_SHA256_Final(unsigned char *digest, SHA256_CTX *context) {
    SHA256_Final(digest, context);
}
#pragma GCC diagnostic pop

#endif
