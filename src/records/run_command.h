/* The `command` of a request as the engine's record. */
#ifndef HD_RECORDS_RUN_COMMAND_H
#define HD_RECORDS_RUN_COMMAND_H

#include "base/compiler.h"
#include "value/val.h"

/*
 * From {"resume", "update", "goto"}: goto is a node's name, a Send {"node",
 * "input"}, or a list of these; update is an object or a list of pairs. NULL: no memory.
 */
HD_MUST_CHECK struct hd_val *hd_run_command_make(const struct hd_val *given);

#endif
