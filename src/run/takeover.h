/*
 * Continues the runs of servers that are gone, where several servers share the store.
 *
 * A hold whose server has no row in `servers` is an orphan. When a server goes, each of the others
 * takes over its share of the orphans, by the hash of the thread; half a lease later each takes
 * over what is left, and the leader searches for orphans in every lease. The leader also finds runs
 * in flight that no server holds: those of a server that used the store alone before. While the
 * lease of this server is in doubt, its own runs are suspended.
 *
 * Belongs to the loop, except where noted.
 */
#ifndef HD_RUN_TAKEOVER_H
#define HD_RUN_TAKEOVER_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"

struct hd_app;
struct hd_takeover;

/* For a server of a cluster. Also after an error the caller destroys *out, if it is not NULL. */
HD_MUST_CHECK int hd_takeover_create(struct hd_app *app, struct hd_takeover **out);
/* This server is about to stop: takes no more threads over. Accepts NULL. */
void hd_takeover_retire(struct hd_takeover *takeover);
/* Starts no more work. Accepts NULL. */
void hd_takeover_stop(struct hd_takeover *takeover);
/* No work may be pending (hd_defer_count()). Accepts NULL. */
void hd_takeover_destroy(struct hd_takeover *takeover);

/*
 * At the start, before requests are served: the leader continues all runs that no server holds or
 * whose holder is gone. Blocks on the store.
 */
HD_MUST_CHECK int hd_takeover_begin(struct hd_takeover *takeover, struct heddle_error *fault);
/* The number of threads taken over since the start. */
uint64_t hd_takeover_count(const struct hd_takeover *takeover);

#endif
