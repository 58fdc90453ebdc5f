#ifndef CHIREDIS_SHIM_H
#define CHIREDIS_SHIM_H

// The reader and the formatter alone: the sockets are ours.
#include <hiredis/hiredis.h>
#include <hiredis/read.h>

#endif
