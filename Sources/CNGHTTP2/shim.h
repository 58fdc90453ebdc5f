#ifndef CNGHTTP2_SHIM_H
#define CNGHTTP2_SHIM_H

#include <nghttp2/nghttp2.h>

// Enumerators whose types differ from those of the functions that take them.
static const int CNGHTTP2_DEFERRED = NGHTTP2_ERR_DEFERRED;
static const int CNGHTTP2_CALLBACK_FAILURE = NGHTTP2_ERR_CALLBACK_FAILURE;
static const int CNGHTTP2_STREAM_FAILURE = NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
static const uint32_t CNGHTTP2_EOF = NGHTTP2_DATA_FLAG_EOF;
static const uint32_t CNGHTTP2_NO_END_STREAM = NGHTTP2_DATA_FLAG_NO_END_STREAM;

#endif
