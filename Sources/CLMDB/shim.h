#ifndef CLMDB_SHIM_H
#define CLMDB_SHIM_H

#include <lmdb.h>

#endif
