/* The `kwargs` of a run as clients and webhooks see them. */
#ifndef HD_RECORDS_RUN_KWARGS_H
#define HD_RECORDS_RUN_KWARGS_H

#include <stdbool.h>

#include "base/json.h"
#include "base/slice.h"

/*
 * Writes the stored kwargs. Without `shows_root` (namespaces.show: false) the root of
 * config.configurable.checkpoint_ns is left out, as in states and events.
 */
void hd_run_put_kwargs(struct hd_jw *jw, struct hd_slice kwargs, bool shows_root);

#endif
