/*
 * A request for a run: the body that POST …/runs, crons and batches have in
 * common, checked. Pure; everything borrows from the body.
 */
#ifndef HD_RECORDS_RUN_REQUEST_H
#define HD_RECORDS_RUN_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/slice.h"
#include "graph/engine/run.h"

enum hd_multitask {
    HD_MULTITASK_ENQUEUE,
    HD_MULTITASK_REJECT,
    HD_MULTITASK_INTERRUPT,
    HD_MULTITASK_ROLLBACK
};

extern const char *const hd_multitask_names[]; /* ends with NULL */
const char *hd_multitask_name(enum hd_multitask multitask);

/* Members that were not given, or null, are NULL or empty. */
struct hd_run_request {
    struct hd_slice assistant_id; /* an assistant's id or a graph's; never empty */
    hd_json_val input;
    hd_json_val command;
    hd_json_val metadata;
    hd_json_val config;       /* without what follows it is an object */
    hd_json_val configurable; /* config.configurable */
    hd_json_val context;
    hd_json_val checkpoint_map;
    struct hd_slice checkpoint_id;
    struct hd_slice checkpoint_ns; /* of `checkpoint`, not of the configurable */
    bool has_checkpoint_ns;        /* given, maybe empty */
    struct hd_slice root;          /* config.configurable.checkpoint_ns; without `|` */
    bool has_root;                 /* given, maybe empty */
    struct hd_slice webhook;
    hd_json_val interrupt_before; /* "*" or a list of names */
    hd_json_val interrupt_after;
    hd_json_val feedback_keys;
    uint32_t modes; /* at least one */
    bool subgraphs;
    bool is_resumable;
    bool cancels_on_disconnect;
    bool keeps_thread; /* on_completion */
    bool creates_thread;
    enum hd_multitask multitask;
    enum hd_durability durability;
    int64_t delay_us; /* after_seconds */
};

/* HD_EINVAL: `fault` names the member and the cause. */
HD_MUST_CHECK int hd_run_request_read(struct hd_run_request *request, hd_json_val body,
                                      struct heddle_error *fault);

#endif
