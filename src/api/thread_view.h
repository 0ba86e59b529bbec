/* Threads as clients see them. The values are not part of the record: they are those of a
 * checkpoint, and read only when requested. For store threads. */
#ifndef HD_API_THREAD_VIEW_H
#define HD_API_THREAD_VIEW_H

#include "api/api.h"
#include "records/record.h"

enum hd_thread_view_member {
    HD_THREAD_SHOWS_VALUES = 1,
    HD_THREAD_SHOWS_TTL = 2,
    HD_THREAD_SHOWS_USAGE = 8192
    /* The others are private: bits of the table in thread_view.c. */
};

/* All members that are shown by default. */
unsigned hd_thread_view_all(void);
/* The named members, all for no name. HD_EINVAL for an unknown member. */
HD_MUST_CHECK int hd_thread_view_select(struct hd_call *call, const struct hd_slice *names,
                                        size_t count, unsigned *members);
/* The member of that name; 0: unknown. */
unsigned hd_thread_view_member(struct hd_slice name);

/* Writes the object to call->jw. */
HD_MUST_CHECK int hd_thread_view(struct hd_call *call, const struct hd_thread_rec *thread,
                                 unsigned members);
/* The same without the brackets: members of an object that is being written to `jw`. */
HD_MUST_CHECK int hd_thread_view_write(struct hd_call *call, struct hd_jw *jw,
                                       const struct hd_thread_rec *thread, unsigned members);

/* Appends the JSON of the current values of a run's line; null when it has no state. HD_ENOTFOUND:
 * the thread does not exist. */
HD_MUST_CHECK int hd_thread_view_run_values(struct hd_call *call, const struct hd_run_rec *run,
                                            struct hd_buf *out);
/* The same for the line of the thread's head. `only`: other channels may be omitted; empty: all
 * channels. */
HD_MUST_CHECK int hd_thread_view_rec_values(struct hd_call *call,
                                            const struct hd_thread_rec *thread,
                                            struct hd_slice only, struct hd_buf *out);

/* Reads the messages of a thread for the search index: a hd_thread_texts_reader. */
HD_MUST_CHECK int hd_thread_view_messages(struct hd_app *app, const struct hd_thread_rec *thread,
                                          struct hd_arena *arena, struct hd_buf *out,
                                          struct heddle_error *fault);

#endif
