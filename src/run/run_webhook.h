/*
 * The webhook of a run: the body reports the run and its end, the URL comes from its kwargs. An
 * active run has hd_run_webhook() (active_run.h).
 */
#ifndef HD_RUN_RUN_WEBHOOK_H
#define HD_RUN_RUN_WEBHOOK_H

#include <stdint.h>

#include "app/app.h"
#include "base/arena.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "records/record.h"
#include "webhook/outbox.h"

struct hd_run_webhook_end {
    enum hd_run_state status;
    int64_t started_at;     /* 0: not known */
    struct hd_slice values; /* JSON; empty: none */
    struct hd_slice error;  /* a text; empty: none */
};

/*
 * For a run that is not active: the row to store with its end, in the arena; the caller then calls
 * hd_webhooks_recover() on the loop. NULL: the run has no webhook, or it is too large, which is
 * logged. For store threads.
 */
HD_MUST_CHECK const struct hd_outbox_row *hd_run_webhook_row(const struct hd_app *app,
                                                             const struct hd_run_rec *run,
                                                             const struct hd_run_webhook_end *end,
                                                             struct hd_arena *arena);

#endif
