/*
 * The search index over the titles and messages of threads, and the label of each thread: how its
 * first human message begins, for lists of threads that have no title.
 *
 * The index has one row for each thread and word (table thread_words) and one row for each thread
 * (thread_texts) with the revision of the thread's record that was indexed. It covers the state
 * that the thread shows, newest messages first, up to HD_THREAD_TEXTS_MAX_WORDS words; of a room
 * first its chat. Runs do not wait for it: each change of a thread notes it, and the indexer
 * updates noted threads a moment later on a store thread; a search first updates the noted threads
 * of its own principal. After a start it compares all threads with the index, so threads of older
 * versions, imported threads and those noted before a crash are indexed too.
 *
 * In a cluster each server indexes the threads that it changed itself, and a search also updates
 * those of its principal that changed a moment ago. The leader's comparison indexes missing
 * threads; that of another server waits for the leader's, since it only finds that none is missing.
 *
 * An update expects the thread's record to be the one that it read. A thread that was deleted or
 * moved meanwhile therefore cannot come back into the index.
 *
 *   thread_texts.c         rows: updating, deleting, searching
 *   thread_indexer.c   the indexer: noted threads, and the comparison of all threads
 */
#ifndef HD_SEARCH_THREAD_TEXTS_H
#define HD_SEARCH_THREAD_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/map.h"
#include "base/slice.h"
#include "store/batch.h"

struct heddle;
struct hd_app;
struct hd_thread_indexer;
struct hd_thread_rec;

#define HD_THREAD_TEXTS_MAX_WORDS 2000 /* of one thread */
#define HD_THREAD_TEXTS_MAX_TERMS 16   /* of one search; further words are ignored */
#define HD_THREAD_TEXTS_MAX_LABEL 240  /* bytes */

/*
 * Appends the `messages` of the state that a thread shows: an object {"messages": […]}, or null; of
 * a room {"state": this, "room": […]} with its chat in the same form. Supplied by the layer above,
 * which formats states. For store threads.
 */
typedef int (*hd_thread_texts_reader)(struct hd_app *app, const struct hd_thread_rec *thread,
                                      struct hd_arena *arena, struct hd_buf *out,
                                      struct heddle_error *fault);

/* ---- rows (store threads) ------------------------------------------------ */

/* Brings the index up to date for one thread. 0 too when there is no such thread. */
HD_MUST_CHECK int hd_thread_texts_update(struct hd_app *app, struct hd_slice principal,
                                         struct hd_slice thread_id, struct heddle_error *fault);

/* Appends what removes a thread from the index. Borrows both until applied. */
HD_MUST_CHECK int hd_thread_texts_delete(struct hd_batch_builder *batch, struct hd_slice principal,
                                         struct hd_slice thread_id);

/* Appends the label of a thread that begins with this input; a label that is there stays. */
HD_MUST_CHECK int hd_thread_texts_add_label(struct hd_batch_builder *batch,
                                            struct hd_slice principal, struct hd_slice thread_id,
                                            hd_json_val input);

/* Empty: the thread has none. */
HD_MUST_CHECK int hd_thread_texts_label(struct heddle *store, struct hd_slice principal,
                                        struct hd_slice thread_id, struct hd_arena *arena,
                                        struct hd_slice *out, struct heddle_error *fault);

/* The words of a search. */
struct hd_terms {
    struct hd_slice items[HD_THREAD_TEXTS_MAX_TERMS]; /* the longest first */
    size_t count;                                     /* 0: the text has no words */
};
HD_MUST_CHECK int hd_terms_parse(struct hd_terms *terms, struct hd_slice text,
                                 struct hd_arena *arena);
/*
 * Makes *found the ids of the threads of a principal that have all of the terms; at least one is
 * needed. The caller ends the map, unless this fails. *is_common: each term has so many rows that
 * the ids were not collected; the caller walks threads with hd_thread_texts_match() instead.
 */
HD_MUST_CHECK int hd_thread_texts_find(struct heddle *store, struct hd_slice principal,
                                       const struct hd_terms *terms, struct hd_map *found,
                                       bool *is_common, struct heddle_error *fault);
/* True if one thread has all of them. */
HD_MUST_CHECK int hd_thread_texts_match(struct heddle *store, struct hd_slice principal,
                                        struct hd_slice thread_id, const struct hd_terms *terms,
                                        bool *out, struct heddle_error *fault);

/* ---- the indexer ----------------------------------------------------------- */

HD_MUST_CHECK int hd_thread_indexer_create(struct hd_app *app, struct hd_thread_indexer **out);
/* It must be stopped. */
void hd_thread_indexer_destroy(struct hd_thread_indexer *texts);
/* Starts to compare all threads with the index. */
void hd_thread_indexer_start(struct hd_thread_indexer *texts, hd_thread_texts_reader reader);
/* Compares all threads once more: another server is gone, and with it the threads that it noted. */
void hd_thread_indexer_compare(struct hd_thread_indexer *texts);
/* Indexes no more threads. HD_READY: no work is in progress. 0: calls `done` when it has ended. */
HD_MUST_CHECK int hd_thread_indexer_stop(struct hd_thread_indexer *texts, void (*done)(void *ctx),
                                         void *ctx);
hd_thread_texts_reader hd_thread_indexer_reader(const struct hd_thread_indexer *texts);

/* A thread has changed. For any thread of the process; without memory it is found later. */
void hd_thread_indexer_note(struct hd_thread_indexer *texts, struct hd_slice principal,
                            struct hd_slice thread_id);

/*
 * Updates noted threads of a principal, a bounded number of them. *is_complete: no thread of any
 * principal that the comparison has not reached may be missing in the index. For store threads.
 */
HD_MUST_CHECK int hd_thread_indexer_catch_up(struct hd_app *app, struct hd_slice principal,
                                             bool *is_complete, struct heddle_error *fault);

#endif
