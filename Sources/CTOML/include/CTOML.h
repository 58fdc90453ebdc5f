// A document in TOML 1.0, parsed by toml++ and laid out flat, so that Swift can walk it without
// owning C++ objects.
//
// Node 0 is the root table. The children of a table or an array are consecutive nodes, in file
// order. Lines and columns count from 1; a column is a character (Unicode scalar), not a byte.
// Nothing here throws or traps: asking for a node that does not exist answers false.
#ifndef CTOML_H
#define CTOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The largest document that is read, in bytes.
#define CTOML_MAX_BYTES (1u << 20)

/// How many arrays and inline tables may lie in one another.
#define CTOML_MAX_NESTING 16

/// How many parts a dotted key may have.
#define CTOML_MAX_KEY_PARTS 16

typedef struct ctoml_document ctoml_document;

typedef enum ctoml_kind {
    CTOML_TABLE,
    CTOML_ARRAY,
    CTOML_STRING,
    CTOML_INTEGER,
    CTOML_FLOAT,
    CTOML_BOOLEAN,
    CTOML_DATE_OR_TIME,
} ctoml_kind;

typedef struct ctoml_position {
    uint32_t line;
    uint32_t column;
} ctoml_position;

/// From `begin` up to, not including, `end`.
typedef struct ctoml_region {
    ctoml_position begin;
    ctoml_position end;
} ctoml_region;

/// UTF-8 that belongs to the document; not terminated, may contain NUL.
typedef struct ctoml_text {
    const char *_Nullable bytes;
    size_t count;
} ctoml_text;

typedef struct ctoml_node {
    ctoml_kind kind;
    /// Where the value stands; for a table with a header, the header.
    ctoml_region region;
    /// The key under which a table's child is; empty for elements of arrays and the root.
    ctoml_text key;
    ctoml_region key_region;
    /// Of tables and arrays: the index of the first child, and how many there are.
    size_t first_child;
    size_t child_count;
    /// The value of a scalar of that kind.
    ctoml_text string;
    int64_t integer;
    double floating;
    bool boolean;
} ctoml_node;

/// Why a document could not be read. `message` is terminated and cut to fit.
typedef struct ctoml_error {
    char message[256];
    ctoml_position position;
} ctoml_error;

/// Parses `count` bytes. The caller owns the answer and gives it back to `ctoml_free`; NULL means
/// `error` is filled.
ctoml_document *_Nullable ctoml_parse(
    const char *_Nullable bytes, size_t count, ctoml_error *_Nonnull error);

/// Frees a document, and with it every text that was read from it.
void ctoml_free(ctoml_document *_Nullable document);

/// Reads one node; false when there is none of that index.
bool ctoml_node_at(
    const ctoml_document *_Nonnull document, size_t index, ctoml_node *_Nonnull node);

#ifdef __cplusplus
}
#endif

#endif
