/*
 * Lines on which delegates execute. Such a line is busy although no run is in flight on it. The
 * loop adds and removes visits; store threads look them up.
 */
#ifndef HD_RUN_LINE_VISITS_H
#define HD_RUN_LINE_VISITS_H

#include <stdbool.h>
#include <uv.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_line_visit;

struct hd_line_visits {
    uv_mutex_t lock;
    struct hd_line_visit *first;
};

HD_MUST_CHECK int hd_line_visits_init(struct hd_line_visits *visits);
void hd_line_visits_fini(struct hd_line_visits *visits);
HD_MUST_CHECK int hd_line_visits_add(struct hd_line_visits *visits, struct hd_slice principal,
                                     struct hd_slice thread, struct hd_slice ns);
/* Removes one visit of the line. */
void hd_line_visits_remove(struct hd_line_visits *visits, struct hd_slice principal,
                           struct hd_slice thread, struct hd_slice ns);
bool hd_line_visits_has(struct hd_line_visits *visits, struct hd_slice principal,
                        struct hd_slice thread, struct hd_slice ns);

#endif
