#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
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
static const unsigned long COpenSSL_ERR_SYSTEM_FLAG = ERR_SYSTEM_FLAG;
static inline int COpenSSL_EVP_PKEY_PUBLIC_KEY(void) {
    return EVP_PKEY_PUBLIC_KEY;
}
// The builder keeps the pointer to the name, so the name must be a literal of C: the bytes of a
// Swift string are gone when the call returns.
static inline int COpenSSL_OSSL_PARAM_BLD_push_RSA_N(OSSL_PARAM_BLD *builder, const BIGNUM *n) {
    return OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n);
}
static inline int COpenSSL_OSSL_PARAM_BLD_push_RSA_E(OSSL_PARAM_BLD *builder, const BIGNUM *e) {
    return OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e);
}
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
