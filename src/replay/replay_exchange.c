/* Replies from a recording; notes requests that differ from the recorded ones. */
#include "records/recording.h"

#include <heddle.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/vec.h"
#include "records/recording_internal.h"
#include "store/codec/pack.h"
#include "store/rows.h"
#include "value/diff.h"

#define MAX_BYTES ((size_t)1 << 30) /* of all exchanges of a thread */
#define MAX_NOTES ((size_t)64 << 10)

struct kept {
    struct hd_kept_exchange exchange;
    struct hd_slice run;
    bool is_used;
};

struct hd_replaying {
    struct hd_arena arena;
    struct kept *list; /* in the order in which they ended */
    size_t count, cap;
    struct hd_recorder recorder;
    struct hd_replay_notes notes, reported;
};

/* ---- looking ---------------------------------------------------------- */

/* Without scheme and host: a server may be somewhere else today. */
static struct hd_slice path_of(struct hd_slice url)
{
    const char *host = memmem(url.ptr, url.len, "://", 3);
    const char *slash = host ? memchr(host + 3, '/', url.len - (size_t)(host + 3 - url.ptr)) : NULL;

    return slash ? hd_slice(slash, url.len - (size_t)(slash - url.ptr)) : hd_slice(NULL, 0);
}

static bool is_same_place(const struct kept *kept, const struct hd_record_request *request,
                          struct hd_slice place)
{
    return !kept->is_used && hd_slice_eq(kept->run, hd_place_run(request)) &&
           hd_slice_eq(kept->exchange.place, place) &&
           hd_slice_eq(kept->exchange.peer, request->peer) &&
           hd_slice_eq(kept->exchange.method, request->method);
}

static struct kept *find_kept(struct hd_replaying *replaying,
                              const struct hd_record_request *request, struct hd_slice place)
{
    struct kept *similar = NULL;

    for (size_t i = 0; i < replaying->count; i++) {
        struct kept *kept = &replaying->list[i];

        if (!is_same_place(kept, request, place))
            continue;
        if (hd_slice_eq(kept->exchange.url, request->url))
            return kept;
        if (!similar && hd_slice_eq(path_of(kept->exchange.url), path_of(request->url)))
            similar = kept;
    }
    return similar;
}

/* ---- noting ----------------------------------------------------------- */

static void note_line(struct hd_replaying *replaying, const char *fmt, ...) HD_PRINTF(2, 3);

/* Notes beyond the limit are only counted. */
static void note_line(struct hd_replaying *replaying, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (len > 0 && (size_t)len < sizeof(line) &&
        replaying->notes.text.len + (size_t)len <= MAX_NOTES)
        (void)!hd_buf_append(&replaying->notes.text, line, (size_t)len);
}

/* Compares the bodies; ids that are new in each run do not count. */
static int compare(struct hd_replaying *replaying, struct hd_slice place, struct hd_slice then,
                   struct hd_slice now)
{
    struct hd_val *a = NULL, *b = NULL;
    struct hd_diff diff;
    bool differs = false;
    int err = 0;

    if (hd_slice_eq(then, now))
        return 0;
    if (hd_val_parse_json(then, &a, NULL) || hd_val_parse_json(now, &b, NULL)) {
        replaying->notes.differing++;
        note_line(replaying, "  %.*s: the request differs\n", (int)place.len, place.ptr);
    } else {
        hd_diff_init(&diff);
        err = hd_diff_find(&diff, a, b, &differs);
        if (!err && differs) {
            replaying->notes.differing++;
            note_line(replaying, "  %.*s: the request differs at %s\n", (int)place.len, place.ptr,
                      diff.path.ptr);
        }
        hd_diff_fini(&diff);
    }
    hd_val_unref(a);
    hd_val_unref(b);
    return err;
}

/* A session's stream for messages of the MCP server ends with its run, and is not recorded then. */
static bool is_session_stream(const struct hd_record_request *request)
{
    return !request->task && hd_slice_eq(request->peer, HD_S("mcp")) &&
           hd_slice_eq(request->method, HD_S("GET"));
}

static void miss(struct hd_replaying *replaying, const struct hd_record_request *request,
                 struct hd_slice place, struct hd_record_answer *answer)
{
    answer->error = "this exchange was not recorded";
    if (is_session_stream(request))
        return;
    replaying->notes.missing++;
    note_line(replaying, "  %.*s: %.*s %.*s was not recorded\n", (int)place.len, place.ptr,
              (int)request->method.len, request->method.ptr, (int)request->url.len,
              request->url.ptr);
}

static bool on_replay_answer(void *ctx, const struct hd_record_request *request,
                             struct hd_record_answer *answer)
{
    struct hd_replaying *replaying = ctx;
    struct kept *kept = NULL;
    struct hd_buf place;

    *answer = (struct hd_record_answer){.tries = 1};
    hd_buf_init(&place, HD_RECORDING_LIMIT);
    if (!hd_place_write(&place, request))
        kept = find_kept(replaying, request, hd_buf_slice(&place));
    if (kept && compare(replaying, kept->exchange.place, kept->exchange.request, request->body))
        kept = NULL;
    if (kept) {
        kept->is_used = true;
        replaying->notes.answered++;
        answer->error = kept->exchange.error.len > 0 ? kept->exchange.error.ptr : NULL;
        answer->is_timeout = kept->exchange.is_timeout;
        answer->status = (long)kept->exchange.status;
        answer->headers = kept->exchange.headers;
        answer->body = kept->exchange.body;
        answer->is_partial = kept->exchange.is_partial;
        answer->tries = (int)kept->exchange.tries;
    } else {
        miss(replaying, request, hd_buf_slice(&place), answer);
    }
    hd_buf_fini(&place);
    return true;
}

/* ---- reading ---------------------------------------------------------- */

static int add_kept(struct hd_replaying *replaying, struct hd_slice run, struct hd_slice text)
{
    struct kept *kept;
    int err = hd_array_grow(replaying->list, replaying->count, replaying->cap);

    if (err)
        return err;
    kept = &replaying->list[replaying->count];
    *kept = (struct kept){.is_used = false};
    err = hd_kept_read(text, &kept->exchange);
    if (!err && kept->exchange.error.len > 0) /* it is used as a C string */
        err = hd_arena_copy(&replaying->arena, kept->exchange.error, &kept->exchange.error);
    if (!err)
        err = hd_arena_copy(&replaying->arena, run, &kept->run);
    if (!err)
        replaying->count++;
    return err;
}

static int on_exchange_row(void *arg, size_t query, const struct hd_cell *cells)
{
    struct hd_replaying *replaying = arg;
    struct hd_slice text;
    int err = hd_unpack_copy(&replaying->arena, cells[HD_EXCHANGES_DATA].bytes, &text);

    (void)query;
    return err ? err : add_kept(replaying, cells[HD_EXCHANGES_RUN].bytes, text);
}

int hd_replaying_create(struct heddle *store, struct hd_slice principal, struct hd_slice thread,
                        struct hd_replaying **out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(principal), hd_cell_bytes(thread)};
    const struct hd_query query = {.table = HD_EXCHANGES,
                                   .index = HD_PRIMARY,
                                   .prefix = key,
                                   .prefix_count = HD_COUNT(key),
                                   .columns = HD_ALL_COLUMNS};
    struct hd_replaying *replaying = hd_calloc(1, sizeof(*replaying));
    int err;

    if (!replaying)
        return HD_ENOMEM;
    hd_arena_init(&replaying->arena, MAX_BYTES);
    hd_buf_init(&replaying->notes.text, MAX_NOTES);
    hd_buf_init(&replaying->reported.text, MAX_NOTES);
    replaying->recorder = (struct hd_recorder){.answer = on_replay_answer, .ctx = replaying};
    err = hd_rows_scan(store, query, on_exchange_row, replaying, fault);
    if (err) {
        hd_replaying_destroy(replaying);
        return err;
    }
    *out = replaying;
    return 0;
}

void hd_replaying_destroy(struct hd_replaying *replaying)
{
    if (!replaying)
        return;
    hd_buf_fini(&replaying->notes.text);
    hd_buf_fini(&replaying->reported.text);
    hd_arena_fini(&replaying->arena);
    hd_free(replaying->list);
    hd_free(replaying);
}

struct hd_recorder *hd_replaying_recorder(struct hd_replaying *replaying)
{
    return &replaying->recorder;
}

size_t hd_replaying_count(const struct hd_replaying *replaying)
{
    return replaying->count;
}

const struct hd_replay_notes *hd_replaying_notes(struct hd_replaying *replaying)
{
    struct hd_buf empty = replaying->reported.text;

    replaying->reported = replaying->notes;
    hd_buf_reset(&empty);
    replaying->notes = (struct hd_replay_notes){.text = empty};
    return &replaying->reported;
}
