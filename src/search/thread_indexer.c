/*
 * The indexer. The loop owns its timer and starts one job at a time on a store thread; noted
 * threads are in a list under a lock, since any thread of the process may note one.
 */
#include <heddle.h>
#include <string.h>
#include <uv.h>

#include "app/app.h"
#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "records/record.h"
#include "search/thread_texts.h"
#include "store/rows.h"

#define MAX_NOTED 10000 /* threads; when there are more, all threads are compared again */
#define MAX_JOB 16      /* threads that one job indexes */
#define MAX_CATCH_UP 64 /* threads that a search indexes first */
#define PAGE 500        /* threads that are compared at a time */
#define MAX_PAGE_BYTES ((size_t)16 << 20)
#define SECOND INT64_C(1000000)
#define MAX_WAIT_US (15 * SECOND) /* of a comparison for the leader's, at one thread */
#define RECENT_US (60 * SECOND)   /* changes that another server may not have indexed yet */
#define SOON_MS 200 /* from a note to its job: changes of one moment are indexed together */
#define RETRY_MS 5000

struct noted {
    struct noted *next;
    uint64_t sequence;                    /* since it is busy: its number among all that were */
    struct hd_slice principal, thread_id; /* behind this struct */
};

/* A thread as one of the two tables has it. */
struct thread_entry {
    struct hd_slice principal, thread_id;
    int64_t rev;
};

struct page {
    struct thread_entry entries[PAGE];
    size_t count;
};

struct hd_thread_indexer {
    struct hd_app *app;
    hd_thread_texts_reader reader;
    uv_timer_t timer;
    uv_async_t wake;
    unsigned open_handles;
    bool is_working, is_stopped;
    void (*stopped)(void *ctx);
    void *stopped_ctx;

    uv_mutex_t lock; /* of what follows */
    struct noted *first, **last;
    struct hd_map known;    /* noted threads, by principal and id */
    struct noted *busy;     /* being updated, by the job or by searches */
    uint64_t last_sequence; /* given to busy ones so far */
    uv_cond_t finished;     /* one of them is busy no more */
    bool must_compare;      /* all threads, from the first one on */
    bool is_complete;

    /* The comparison, the store thread's while a job is under way: the last thread looked at. */
    struct hd_buf at_principal, at_thread;
    bool is_comparing;
    bool is_waiting;       /* for the leader to index the next thread */
    int64_t waiting_since; /* at that thread; monotonic; 0: not yet */
    int64_t took;          /* by the last job */
    int err;
    struct heddle_error fault;
};

hd_thread_texts_reader hd_thread_indexer_reader(const struct hd_thread_indexer *texts)
{
    return texts->reader;
}

/* ---- noted threads ----------------------------------------------------- */

/* "principal:thread_id"; the principal has no colon. */
static struct noted *make_noted(struct hd_slice principal, struct hd_slice thread_id)
{
    struct noted *noted = hd_malloc(sizeof(*noted) + principal.len + 1 + thread_id.len);
    char *text;

    if (!noted)
        return NULL;
    text = (char *)(noted + 1);
    if (principal.len > 0)
        memcpy(text, principal.ptr, principal.len);
    text[principal.len] = ':';
    memcpy(text + principal.len + 1, thread_id.ptr, thread_id.len);
    noted->next = NULL;
    noted->principal = hd_slice(text, principal.len);
    noted->thread_id = hd_slice(text + principal.len + 1, thread_id.len);
    return noted;
}

static struct hd_slice key_of(const struct noted *noted)
{
    return hd_slice(noted->principal.ptr, noted->principal.len + 1 + noted->thread_id.len);
}

void hd_thread_indexer_note(struct hd_thread_indexer *texts, struct hd_slice principal,
                            struct hd_slice thread_id)
{
    struct noted *noted;
    bool is_known;

    if (!texts)
        return;
    noted = make_noted(principal, thread_id);
    uv_mutex_lock(&texts->lock);
    is_known = noted && hd_map_get(&texts->known, key_of(noted));
    if (noted && !is_known && hd_map_put(&texts->known, key_of(noted), noted) == 0) {
        *texts->last = noted;
        texts->last = &noted->next;
        noted = NULL;
    } else if (!is_known) {
        texts->must_compare = true;
    }
    uv_mutex_unlock(&texts->lock);
    hd_free(noted);
    (void)uv_async_send(&texts->wake);
}

/*
 * The first noted thread, of one principal if it is given; NULL: none. It is busy until
 * finish_noted().
 */
static struct noted *take_noted(struct hd_thread_indexer *texts, const struct hd_slice *principal)
{
    struct noted *noted, **at = &texts->first;

    uv_mutex_lock(&texts->lock);
    while (*at && principal && !hd_slice_eq((*at)->principal, *principal))
        at = &(*at)->next;
    noted = *at;
    if (noted) {
        *at = noted->next;
        if (!noted->next)
            texts->last = at;
        (void)hd_map_remove(&texts->known, key_of(noted));
        noted->sequence = ++texts->last_sequence;
        noted->next = texts->busy;
        texts->busy = noted;
    }
    uv_mutex_unlock(&texts->lock);
    return noted;
}

static void finish_noted(struct hd_thread_indexer *texts, struct noted *noted)
{
    struct noted **at = &texts->busy;

    uv_mutex_lock(&texts->lock);
    while (*at != noted)
        at = &(*at)->next;
    *at = noted->next;
    uv_cond_broadcast(&texts->finished);
    uv_mutex_unlock(&texts->lock);
    hd_free(noted);
}

static bool is_busy(const struct hd_thread_indexer *texts, struct hd_slice principal,
                    uint64_t newest)
{
    const struct noted *noted = texts->busy;

    while (noted && (noted->sequence > newest || !hd_slice_eq(noted->principal, principal)))
        noted = noted->next;
    return noted != NULL;
}

/*
 * Waits for the threads of a principal that others are updating now: they are no longer noted, and
 * not yet in the index. Those that become busy meanwhile are not waited for.
 */
static void await_busy(struct hd_thread_indexer *texts, struct hd_slice principal)
{
    uint64_t newest;

    uv_mutex_lock(&texts->lock);
    newest = texts->last_sequence;
    while (is_busy(texts, principal, newest))
        uv_cond_wait(&texts->finished, &texts->lock);
    uv_mutex_unlock(&texts->lock);
}

static int update_noted(struct hd_thread_indexer *texts, const struct hd_slice *principal,
                        size_t limit, size_t *count, struct heddle_error *fault)
{
    struct noted *noted;
    int err = 0;

    for (*count = 0; !err && *count < limit; ++*count) {
        noted = take_noted(texts, principal);
        if (!noted)
            break;
        err = hd_thread_texts_update(texts->app, noted->principal, noted->thread_id, fault);
        if (err)
            hd_thread_indexer_note(texts, noted->principal, noted->thread_id);
        finish_noted(texts, noted);
    }
    return err;
}

static int on_recent(void *arg, size_t which, const struct hd_cell *cells)
{
    (void)which;
    hd_thread_indexer_note(arg, cells[HD_THREAD_INFO_PRINCIPAL].bytes,
                           cells[HD_THREAD_INFO_ID].bytes);
    return 0;
}

/* In a cluster: notes what other servers have noted and may not have indexed yet. */
static int note_recent(struct hd_app *app, struct hd_slice principal, struct heddle_error *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(principal);
    const struct hd_cell low = hd_cell_int(hd_clock_now_us() - RECENT_US);
    const struct hd_query query = {.table = HD_THREAD_INFO,
                                   .index = HD_THREAD_INFO_BY_UPDATED,
                                   .prefix = &prefix,
                                   .prefix_count = 1,
                                   .low = &low,
                                   .is_reverse = true,
                                   .limit = MAX_CATCH_UP,
                                   .columns = 0};

    if (!hd_cluster_is_on(app->cluster))
        return 0;
    return hd_rows_read(app->store, &query, 1, on_recent, app->texts, fault);
}

int hd_thread_indexer_catch_up(struct hd_app *app, struct hd_slice principal, bool *is_complete,
                               struct heddle_error *fault)
{
    struct hd_thread_indexer *texts = app->texts;
    size_t count;
    int err = note_recent(app, principal, fault);

    if (!err)
        err = update_noted(texts, &principal, MAX_CATCH_UP, &count, fault);
    await_busy(texts, principal);
    uv_mutex_lock(&texts->lock);
    *is_complete = texts->is_complete && !texts->must_compare;
    uv_mutex_unlock(&texts->lock);
    return err;
}

/* ---- comparing all threads --------------------------------------------- */

struct page_reading {
    struct page *page;
    struct hd_arena *arena;
    unsigned rev_column;
};

static int on_entry(void *arg, size_t which, const struct hd_cell *cells)
{
    struct page_reading *reading = arg;
    struct thread_entry *entry = &reading->page->entries[reading->page->count++];
    int err = hd_arena_copy(reading->arena, cells[0].bytes, &entry->principal);

    (void)which;
    entry->rev = cells[reading->rev_column].number;
    return err ? err : hd_arena_copy(reading->arena, cells[1].bytes, &entry->thread_id);
}

/* The next page of a table whose key is principal and thread, behind the last thread looked at. */
static int read_page(struct hd_thread_indexer *texts, enum hd_table_id table, unsigned rev_column,
                     struct hd_arena *arena, struct page *page)
{
    const struct hd_cell after[] = {hd_cell_bytes(hd_buf_slice(&texts->at_principal)),
                                    hd_cell_bytes(hd_buf_slice(&texts->at_thread))};
    const struct hd_query query = {.table = table,
                                   .index = HD_PRIMARY,
                                   .after = after,
                                   .after_count = HD_COUNT(after),
                                   .limit = PAGE,
                                   .columns = 1u << rev_column};
    struct page_reading reading = {.page = page, .arena = arena, .rev_column = rev_column};

    page->count = 0;
    return hd_rows_read(texts->app->store, &query, 1, on_entry, &reading, &texts->fault);
}

static int compare_entries(const struct thread_entry *a, const struct thread_entry *b)
{
    int order = hd_slice_cmp(a->principal, b->principal);

    return order != 0 ? order : hd_slice_cmp(a->thread_id, b->thread_id);
}

static int move_to(struct hd_thread_indexer *texts, const struct thread_entry *entry)
{
    int err;

    hd_buf_reset(&texts->at_principal);
    hd_buf_reset(&texts->at_thread);
    err = hd_buf_append_slice(&texts->at_principal, entry->principal);
    return err ? err : hd_buf_append_slice(&texts->at_thread, entry->thread_id);
}

/* True if the leader shall index the next thread before this comparison goes on. */
static bool waits_for_leader(struct hd_thread_indexer *texts)
{
    int64_t now = hd_clock_monotonic_us();

    if (texts->waiting_since == 0)
        texts->waiting_since = now;
    texts->is_waiting =
        !hd_cluster_is_leader(texts->app->cluster) && now - texts->waiting_since < MAX_WAIT_US;
    return texts->is_waiting;
}

/*
 * Walks a page of threads beside the index's rows. Both are sorted by the same key and begin behind
 * the same one; rows of the index that the page does not reach are read again with the next.
 */
static int compare_pages(struct hd_thread_indexer *texts, const struct page *threads,
                         const struct page *indexed)
{
    size_t at = 0, updated = 0;
    int err = 0;

    for (size_t i = 0; !err && i < threads->count && updated < MAX_JOB; i++) {
        const struct thread_entry *thread = &threads->entries[i];

        while (at < indexed->count && compare_entries(&indexed->entries[at], thread) < 0)
            at++;
        /* A page that ended before this thread does not show whether the index has it. */
        if (at == indexed->count && indexed->count == PAGE)
            return move_to(texts, &indexed->entries[PAGE - 1]);
        if (at == indexed->count || compare_entries(&indexed->entries[at], thread) != 0 ||
            indexed->entries[at].rev != thread->rev) {
            if (waits_for_leader(texts))
                return 0;
            err = hd_thread_texts_update(texts->app, thread->principal, thread->thread_id,
                                         &texts->fault);
            updated++;
        }
        if (!err)
            err = move_to(texts, thread);
        texts->waiting_since = 0;
    }
    return err;
}

static int compare_some(struct hd_thread_indexer *texts)
{
    struct page *threads = hd_calloc(2, sizeof(*threads)), *indexed;
    struct hd_arena arena;
    int err;

    if (!threads)
        return HD_ENOMEM;
    indexed = threads + 1;
    hd_arena_init(&arena, MAX_PAGE_BYTES);
    err = read_page(texts, HD_THREAD_INFO, HD_THREAD_INFO_REV, &arena, threads);
    if (!err)
        err = read_page(texts, HD_THREAD_TEXTS, HD_THREAD_TEXTS_REV, &arena, indexed);
    if (!err)
        err = compare_pages(texts, threads, indexed);
    if (!err && threads->count == 0)
        texts->is_comparing = false;
    hd_arena_fini(&arena);
    hd_free(threads);
    return err;
}

static void begin_comparison(struct hd_thread_indexer *texts)
{
    uv_mutex_lock(&texts->lock);
    if (texts->must_compare) {
        texts->must_compare = false;
        texts->is_complete = false;
        texts->is_comparing = true;
        hd_buf_reset(&texts->at_principal);
        hd_buf_reset(&texts->at_thread);
    }
    uv_mutex_unlock(&texts->lock);
}

/* ---- jobs -------------------------------------------------------------- */

static void index_threads(void *arg)
{
    struct hd_thread_indexer *texts = arg;
    int64_t began = hd_clock_monotonic_us();
    size_t count = 0;

    begin_comparison(texts);
    texts->is_waiting = false;
    texts->err = update_noted(texts, NULL, MAX_JOB, &count, &texts->fault);
    if (!texts->err && texts->is_comparing && count < MAX_JOB)
        texts->err = compare_some(texts);
    uv_mutex_lock(&texts->lock);
    texts->is_complete = texts->is_complete || (!texts->is_comparing && !texts->must_compare);
    uv_mutex_unlock(&texts->lock);
    texts->took = hd_clock_monotonic_us() - began;
}

static void on_index_timer(uv_timer_t *timer);

static bool has_more(struct hd_thread_indexer *texts)
{
    bool has_more;

    uv_mutex_lock(&texts->lock);
    has_more = texts->first || texts->is_comparing || texts->must_compare;
    uv_mutex_unlock(&texts->lock);
    return has_more;
}

static void on_worked(void *arg)
{
    struct hd_thread_indexer *texts = arg;

    texts->is_working = false;
    if (texts->err)
        hd_log(HD_LOG_WARN, "search", "indexing failed, retrying: %s",
               texts->fault.code ? texts->fault.text : hd_error_text(texts->err));
    if (texts->is_stopped)
        texts->stopped(texts->stopped_ctx);
    else if (texts->err || texts->is_waiting)
        uv_timer_start(&texts->timer, on_index_timer, RETRY_MS, 0);
    else if (has_more(texts)) /* rest as long as it took, so that runs come first */
        uv_timer_start(&texts->timer, on_index_timer, (uint64_t)texts->took / 1000 + 1, 0);
}

static void on_index_timer(uv_timer_t *timer)
{
    struct hd_thread_indexer *texts = timer->data;

    texts->fault = (struct heddle_error){0};
    texts->is_working = true;
    if (hd_defer_run(texts->app->defer, index_threads, on_worked, texts)) {
        texts->is_working = false;
        uv_timer_start(timer, on_index_timer, RETRY_MS, 0);
    }
}

static void on_index_wake(uv_async_t *wake)
{
    struct hd_thread_indexer *texts = wake->data;

    if (!texts->reader || texts->is_working || texts->is_stopped)
        return;
    if (!uv_is_active((uv_handle_t *)&texts->timer) ||
        (texts->is_waiting && uv_timer_get_due_in(&texts->timer) > SOON_MS))
        uv_timer_start(&texts->timer, on_index_timer, SOON_MS, 0);
}

/* ---- from start to end ------------------------------------------------- */

int hd_thread_indexer_create(struct hd_app *app, struct hd_thread_indexer **out)
{
    struct hd_thread_indexer *texts = hd_calloc(1, sizeof(*texts));

    if (!texts)
        return HD_ENOMEM;
    if (uv_mutex_init(&texts->lock)) {
        hd_free(texts);
        return HD_ENOMEM;
    }
    if (uv_cond_init(&texts->finished)) {
        uv_mutex_destroy(&texts->lock);
        hd_free(texts);
        return HD_ENOMEM;
    }
    if (uv_async_init(app->loop, &texts->wake, on_index_wake)) {
        uv_cond_destroy(&texts->finished);
        uv_mutex_destroy(&texts->lock);
        hd_free(texts);
        return HD_EIO;
    }
    (void)uv_timer_init(app->loop, &texts->timer); /* never fails */
    uv_unref((uv_handle_t *)&texts->wake);
    texts->open_handles = 2;
    texts->timer.data = texts->wake.data = texts;
    texts->app = app;
    texts->last = &texts->first;
    texts->must_compare = true;
    hd_map_init(&texts->known, MAX_NOTED);
    hd_buf_init(&texts->at_principal, MAX_PAGE_BYTES);
    hd_buf_init(&texts->at_thread, MAX_PAGE_BYTES);
    *out = texts;
    return 0;
}

void hd_thread_indexer_start(struct hd_thread_indexer *texts, hd_thread_texts_reader reader)
{
    texts->reader = reader;
    uv_timer_start(&texts->timer, on_index_timer, 0, 0);
}

void hd_thread_indexer_compare(struct hd_thread_indexer *texts)
{
    uv_mutex_lock(&texts->lock);
    texts->must_compare = true;
    uv_mutex_unlock(&texts->lock);
    (void)uv_async_send(&texts->wake);
}

int hd_thread_indexer_stop(struct hd_thread_indexer *texts, void (*done)(void *ctx), void *ctx)
{
    texts->is_stopped = true;
    texts->stopped = done;
    texts->stopped_ctx = ctx;
    uv_timer_stop(&texts->timer);
    return texts->is_working ? 0 : HD_READY;
}

static void on_indexer_closed(uv_handle_t *handle)
{
    struct hd_thread_indexer *texts = handle->data;
    struct noted *noted;

    if (--texts->open_handles > 0)
        return;
    while ((noted = take_noted(texts, NULL)))
        finish_noted(texts, noted);
    hd_map_fini(&texts->known);
    hd_buf_fini(&texts->at_principal);
    hd_buf_fini(&texts->at_thread);
    uv_cond_destroy(&texts->finished);
    uv_mutex_destroy(&texts->lock);
    hd_free(texts);
}

void hd_thread_indexer_destroy(struct hd_thread_indexer *texts)
{
    if (!texts)
        return;
    uv_close((uv_handle_t *)&texts->timer, on_indexer_closed);
    uv_close((uv_handle_t *)&texts->wake, on_indexer_closed);
}
