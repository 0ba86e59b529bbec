/*
 * Search for threads. The request determines the reads: records in the order of an index for a page
 * without filters, the matches of the search index for a text, and values only for filters or for
 * the shown page.
 *
 * Threads shared with the caller are included; a caller without shared threads pays one read for
 * it. An own thread hides a shared one with the same id, as everywhere.
 */
#include <stdlib.h>

#include "api/api.h"
#include "api/request/authorize.h"
#include "api/state/checkpoint_target.h"
#include "api/thread_view.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "records/extract.h"
#include "records/participants.h"
#include "search/thread_texts.h"
#include "store/rows.h"

#define MAX_VALUES ((size_t)1 << 30)
#define MAX_FOUND ((size_t)1 << 30) /* bytes of the ids that are sorted */
#define MAX_IDS 1000
#define MAX_TEXT 1000   /* bytes */
#define MAX_DIRECT 2000 /* matches that are read one by one; with more, all threads are scanned */

enum thread_sort { BY_CREATED, BY_UPDATED, BY_STATE_UPDATED, BY_ID, BY_STATUS };

static const char *const sort_names[] = {[BY_CREATED] = "created_at",
                                         [BY_UPDATED] = "updated_at",
                                         [BY_STATE_UPDATED] = "state_updated_at",
                                         [BY_ID] = "thread_id",
                                         [BY_STATUS] = "status",
                                         NULL};

/* A thread that matches, for sorting. */
struct found_threads {
    int64_t number;
    int64_t created_at;
    struct hd_slice text;
    struct hd_slice id;
    const struct hd_shared *shared; /* NULL: the caller's own */
};

struct thread_search {
    struct hd_call *call;
    hd_json_val metadata;
    hd_json_val values;
    int status;           /* -1: any */
    struct hd_slice text; /* to find in the title or the messages; empty: any */
    struct hd_slice *ids;
    size_t id_count;
    struct hd_page page;
    unsigned members;
    unsigned extracted; /* members that `extract` needs */
    struct hd_extract extract;
    bool counts_only;

    struct hd_terms terms; /* of the text */
    struct hd_map having;  /* ids of the caller's own threads that contain all terms */
    bool is_indexed;       /* `having` is set */
    bool is_complete;      /* `having` lacks no thread */
    bool is_common;        /* nearly all threads match: `having` is incomplete */

    int64_t now;
    int64_t total;
    bool is_cut; /* the scan ended when the page was full */
    struct found_threads *found;
    size_t found_count, found_cap;
    struct hd_arena arena; /* of the matches */
    struct hd_shared *shared;
    size_t shared_count;
    const struct hd_shared *current; /* the current thread; NULL: the caller's own */
    struct hd_buf scratch;
};

/* ---- parsing the request */

static int read_filters(struct hd_call *call, struct thread_search *search)
{
    static const char *const statuses[] = {"idle", "busy", "interrupted", "error", NULL};
    int err = hd_body_object(call, "metadata", &search->metadata);

    search->status = -1;
    if (!err)
        err = hd_body_object(call, "values", &search->values);
    if (!err)
        err = hd_body_word(call, "status", statuses, &search->status);
    if (!err)
        err = hd_body_string(call, "text", &search->text);
    if (!err && search->text.len > MAX_TEXT)
        err = hd_error_set(&call->fault, HD_EINVAL, "text: longer than %d bytes", MAX_TEXT);
    /* Every object contains the empty object. */
    if (hd_json_size(search->metadata) == 0)
        search->metadata = NULL;
    if (hd_json_size(search->values) == 0)
        search->values = NULL;
    return err;
}

static int compare_slices(const void *a, const void *b)
{
    return hd_slice_cmp(*(const struct hd_slice *)a, *(const struct hd_slice *)b);
}

static int read_ids(struct hd_call *call, struct thread_search *search)
{
    size_t kept = 0;
    int err = hd_body_strings(call, "ids", &search->ids, &search->id_count);

    if (!err && search->id_count > MAX_IDS)
        return hd_error_set(&call->fault, HD_EINVAL, "ids: more than %d", MAX_IDS);
    for (size_t i = 0; !err && i < search->id_count; i++)
        err = hd_call_uuid(call, "ids", search->ids[i], &search->ids[i]);
    if (err || search->id_count == 0)
        return err;
    qsort(search->ids, search->id_count, sizeof(*search->ids), compare_slices);
    for (size_t i = 0; i < search->id_count; i++) {
        if (kept == 0 || !hd_slice_eq(search->ids[i], search->ids[kept - 1]))
            search->ids[kept++] = search->ids[i];
    }
    search->id_count = kept;
    return 0;
}

static int read_thread_search_members(struct hd_call *call, struct thread_search *search)
{
    struct hd_slice *names;
    size_t count;
    int err = hd_body_strings(call, "select", &names, &count);

    if (!err)
        err = hd_thread_view_select(call, names, count, &search->members);
    if (!err)
        err = hd_extract_parse(&search->extract, hd_body_get(call, "extract"), call->arena,
                               &call->fault);
    for (size_t i = 0; !err && i < search->extract.count; i++)
        search->extracted |= hd_thread_view_member(hd_extract_member(&search->extract.paths[i]));
    return err;
}

/* ---- matching --------------------------------------------------------- */

static int thread_search_contains(struct thread_search *search, struct hd_slice text,
                                  hd_json_val part, bool *out)
{
    struct hd_json json = {NULL};
    int err = hd_json_parse(&json, text, &search->call->fault);

    *out = !err && hd_json_contains(hd_json_root(&json), part);
    hd_json_fini(&json);
    return err;
}

/* Clients store the title in the metadata. */
static int has_title(struct thread_search *search, struct hd_slice metadata, bool *out)
{
    struct hd_json json = {NULL};
    int err = metadata.len > 0 ? hd_json_parse(&json, metadata, &search->call->fault) : 0;
    hd_json_val title = hd_json_get(hd_json_root(&json), HD_S("title"));

    *out = !err && hd_json_is_string(title) && hd_utf8_finds(hd_json_string(title), search->text);
    hd_json_fini(&json);
    return err;
}

/* Until the index is complete, and for a text without words, titles are searched too. */
static int thread_search_has_text(struct thread_search *search, const struct hd_thread_rec *thread,
                                  bool *out)
{
    struct hd_call *call = search->call;
    int err = 0;

    *out = false;
    if ((search->current || search->is_common) && search->terms.count > 0)
        err = hd_thread_texts_match(call->app->store, thread->principal, thread->id, &search->terms,
                                    out, &call->fault);
    else if (search->is_indexed)
        *out = hd_map_get(&search->having, thread->id) != NULL;
    if (err || *out || search->is_complete)
        return err;
    return has_title(search, thread->metadata, out);
}

static int thread_search_matches(struct thread_search *search, const struct hd_thread_rec *thread,
                                 bool *out)
{
    int err = 0;

    *out = (search->status < 0 || (int)thread->status == search->status) &&
           !hd_thread_is_over(thread, search->now);
    if (*out)
        err = hd_call_sees(search->call, HD_OF_THREADS, thread->metadata, out);
    if (!err && *out && search->metadata)
        err = thread->metadata.len > 0
                  ? thread_search_contains(search, thread->metadata, search->metadata, out)
                  : (*out = false, 0);
    if (!err && *out && search->text.len > 0)
        err = thread_search_has_text(search, thread, out);
    if (err || !*out || !search->values)
        return err;
    hd_buf_reset(&search->scratch);
    err = hd_thread_view_rec_values(search->call, thread, hd_slice(NULL, 0), &search->scratch);
    if (!err)
        err = thread_search_contains(search, hd_buf_slice(&search->scratch), search->values, out);
    return err;
}

/* ---- the index of texts ----------------------------------------------- */

static int find_text(struct thread_search *search)
{
    struct hd_call *call = search->call;
    int err;

    if (search->text.len == 0)
        return 0;
    err = hd_terms_parse(&search->terms, search->text, &search->arena);
    if (err || search->terms.count == 0)
        return err;
    err = hd_thread_indexer_catch_up(call->app, call->actor, &search->is_complete, &call->fault);
    if (!err)
        err = hd_thread_texts_find(call->app->store, call->actor, &search->terms, &search->having,
                                   &search->is_common, &call->fault);
    search->is_indexed = !err;
    return err;
}

/* True when an index yields the matching threads without a scan. */
static bool is_found_by_text(const struct thread_search *search)
{
    return search->is_complete && !search->is_common && search->having.count <= MAX_DIRECT;
}

/* Calls `fn` for the caller's own threads that contain the text. */
static int each_having(struct thread_search *search, hd_thread_fn fn)
{
    struct hd_call *call = search->call;
    struct hd_arena arena;
    struct hd_slice id;
    size_t pos = 0;
    void *value;
    int err = 0;

    hd_arena_init(&arena, MAX_VALUES);
    while (err == 0 && hd_map_next(&search->having, &pos, &id, &value)) {
        struct hd_thread_rec thread;

        hd_arena_reset(&arena);
        err = hd_thread_read(call->app->store, call->actor, id, &arena, &thread, &call->fault);
        err = err == HD_ENOTFOUND ? 0 : err ? err : fn(search, &thread);
    }
    hd_arena_fini(&arena);
    return err < 0 ? err : 0;
}

/* ---- shared threads --------------------------------------------------- */

static int find_shared(struct thread_search *search)
{
    struct hd_call *call = search->call;

    if (!call->identity)
        return 0;
    return hd_participations_list(call->app->store, call->actor, call->identity->organisations,
                                  call->identity->organisation_count, &search->arena,
                                  &search->shared, &search->shared_count, &call->fault);
}

/* Switches the call to this thread and its owner's compartment. NULL: the caller's own. */
static void turn_to(struct thread_search *search, const struct hd_shared *shared)
{
    struct hd_call *call = search->call;

    search->current = shared;
    call->principal = shared ? shared->owner : call->actor;
    call->role = shared ? shared->role : HD_ROLE_OWNER;
}

static bool is_asked_for(const struct thread_search *search, struct hd_slice id)
{
    return !search->ids || bsearch(&id, search->ids, search->id_count, sizeof(*search->ids),
                                   compare_slices) != NULL;
}

/* Calls `fn` for shared threads that exist and are not hidden by an own thread. */
static int each_shared(struct thread_search *search, hd_thread_fn fn)
{
    struct hd_call *call = search->call;
    struct heddle *store = call->app->store;
    struct hd_arena arena;
    int err = 0;

    hd_arena_init(&arena, MAX_VALUES);
    for (size_t i = 0; err >= 0 && i < search->shared_count; i++) {
        const struct hd_shared *shared = &search->shared[i];
        struct hd_thread_rec thread;

        if (!is_asked_for(search, shared->thread_id))
            continue;
        hd_arena_reset(&arena);
        err = hd_thread_read(store, call->actor, shared->thread_id, &arena, &thread, &call->fault);
        if (err != HD_ENOTFOUND)
            continue;
        err =
            hd_thread_read(store, shared->owner, shared->thread_id, &arena, &thread, &call->fault);
        turn_to(search, shared);
        if (!err)
            err = fn(search, &thread);
        else if (err == HD_ENOTFOUND)
            err = 0;
        turn_to(search, NULL);
    }
    hd_arena_fini(&arena);
    return err < 0 ? err : 0;
}

/* ---- output ----------------------------------------------------------- */

static void put_extracted(struct thread_search *search, hd_json_val thread)
{
    struct hd_jw *jw = &search->call->jw;

    hd_jw_put_object(jw, "extracted");
    for (size_t i = 0; i < search->extract.count; i++) {
        const struct hd_extract_path *path = &search->extract.paths[i];
        hd_json_val val = hd_extract_find(path, hd_json_get(thread, hd_extract_member(path)));

        hd_jw_key(jw, path->name);
        if (val)
            hd_jw_val(jw, val);
        else
            hd_jw_null(jw);
    }
    hd_jw_object_end(jw);
}

/* Writes the required members to a buffer, parses it and extracts from it. */
static int extract(struct thread_search *search, const struct hd_thread_rec *thread)
{
    struct hd_json json = {NULL};
    struct hd_jw jw;
    int err;

    hd_buf_reset(&search->scratch);
    hd_jw_init(&jw, &search->scratch);
    hd_jw_object(&jw);
    err = hd_thread_view_write(search->call, &jw, thread, search->extracted);
    hd_jw_object_end(&jw);
    if (!err)
        err = hd_json_parse(&json, hd_buf_slice(&search->scratch), &search->call->fault);
    if (!err)
        put_extracted(search, hd_json_root(&json));
    hd_json_fini(&json);
    return err;
}

static int thread_search_show(struct thread_search *search, const struct hd_thread_rec *thread)
{
    struct hd_jw *jw = &search->call->jw;
    int err;

    hd_jw_object(jw);
    err = hd_thread_view_write(search->call, jw, thread, search->members);
    if (!err && search->extract.count > 0)
        err = extract(search, thread);
    hd_jw_object_end(jw);
    if (!err)
        err = jw->err;
    search->call->budget.shown += !err;
    return err;
}

/* ---- in the order of creation ----------------------------------------- */

static bool is_filtered(const struct thread_search *search)
{
    return search->metadata || search->values || search->status >= 0 || search->text.len > 0 ||
           hd_call_is_filtered(search->call, HD_OF_THREADS);
}

static int on_next(void *arg, const struct hd_thread_rec *thread)
{
    struct thread_search *search = arg;
    bool is_match;
    int64_t number;
    int err = thread_search_matches(search, thread, &is_match);

    if (err || !is_match)
        return err;
    number = search->total++;
    if (search->counts_only || number < search->page.offset)
        return 0;
    if (number < search->page.offset + search->page.limit)
        return thread_search_show(search, thread);
    search->is_cut = !is_filtered(search);
    return search->is_cut;
}

static int on_expired(void *arg, const struct hd_thread_rec *thread)
{
    struct thread_search *search = arg;

    if (hd_slice_eq(thread->principal, search->call->principal) &&
        hd_thread_is_over(thread, search->now))
        search->total--;
    return 0;
}

/* The caller's own threads, counted by the database. */
static int count_all(struct thread_search *search)
{
    struct hd_call *call = search->call;
    const struct hd_cell prefix = hd_cell_bytes(call->principal);
    struct hd_query query = {.table = HD_THREAD_INFO,
                             .index = HD_THREAD_INFO_BY_CREATED,
                             .prefix = &prefix,
                             .prefix_count = 1};
    int err = hd_rows_count(call->app->store, query, &search->total, &call->fault);

    if (!err)
        err = hd_threads_expired(call->app->store, search->now, on_expired, search, &call->fault);
    return err;
}

static int scan_own(struct thread_search *search)
{
    struct hd_call *call = search->call;
    int err;

    if (search->counts_only && !is_filtered(search))
        return count_all(search);
    if (search->text.len > 0 && is_found_by_text(search))
        return each_having(search, on_next);
    err = hd_threads_scan(call->app->store, call->principal, search->page.is_descending, on_next,
                          search, &call->fault);
    if (!err && search->is_cut)
        err = count_all(search);
    return err;
}

/* Builds pages without shared threads, and counts with them. */
static int thread_search_scan(struct thread_search *search)
{
    int err = scan_own(search);

    return err ? err : each_shared(search, on_next);
}

/* ---- in another order ------------------------------------------------- */

static int thread_search_keep(struct thread_search *search, const struct hd_thread_rec *thread)
{
    struct found_threads *found;
    int err = 0;

    if (search->found_count == search->found_cap) {
        size_t cap = search->found_cap ? search->found_cap * 2 : 64;
        struct found_threads *grown = hd_realloc(search->found, cap * sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        search->found = grown;
        search->found_cap = cap;
    }
    found = &search->found[search->found_count];
    *found = (struct found_threads){.created_at = thread->created_at, .shared = search->current};
    err = hd_arena_copy(&search->arena, thread->id, &found->id);
    if (search->page.sort == BY_UPDATED)
        found->number = thread->updated_at;
    else if (search->page.sort == BY_STATE_UPDATED)
        found->number = thread->state_updated_at;
    else if (search->page.sort == BY_CREATED)
        found->number = thread->created_at;
    else if (search->page.sort == BY_STATUS)
        found->text = hd_slice_cstr(hd_thread_status_name(thread->status));
    search->found_count += !err;
    return err;
}

static int on_kept(void *arg, const struct hd_thread_rec *thread)
{
    struct thread_search *search = arg;
    bool is_match;
    int err = thread_search_matches(search, thread, &is_match);

    return err || !is_match ? err : thread_search_keep(search, thread);
}

/* The same for threads in the order of the page: stops after the end of the page. */
static int on_kept_in_order(void *arg, const struct hd_thread_rec *thread)
{
    struct thread_search *search = arg;
    int err = on_kept(search, thread);

    search->is_cut = (int64_t)search->found_count > search->page.offset + search->page.limit;
    return err ? err : search->is_cut;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_found(const void *a, const void *b)
{
    const struct found_threads *one = a, *other = b;
    int order = compare_numbers(one->number, other->number);

    if (order == 0)
        order = hd_slice_cmp(one->text, other->text);
    return order != 0 ? order : hd_slice_cmp(one->id, other->id);
}

static int compare_descending(const void *a, const void *b)
{
    return compare_found(b, a);
}

static int show_thread_search_found(struct thread_search *search)
{
    struct hd_call *call = search->call;
    int err = 0;

    if (!search->is_cut)
        search->total = (int64_t)search->found_count;
    if (search->found_count > 0)
        qsort(search->found, search->found_count, sizeof(*search->found),
              search->page.is_descending ? compare_descending : compare_found);
    for (int64_t i = search->page.offset;
         !err && i < (int64_t)search->found_count && i < search->page.offset + search->page.limit;
         i++) {
        struct hd_thread_rec thread;

        turn_to(search, search->found[i].shared);
        err = hd_thread_read(call->app->store, call->principal, search->found[i].id, call->arena,
                             &thread, &call->fault);
        if (!err)
            err = thread_search_show(search, &thread);
        else if (err == HD_ENOTFOUND) /* deleted a moment ago */
            err = 0;
    }
    turn_to(search, NULL);
    return err;
}

static int read_named(struct thread_search *search)
{
    struct hd_call *call = search->call;
    int err = 0;

    for (size_t i = 0; !err && i < search->id_count; i++) {
        struct hd_thread_rec thread;

        err = hd_thread_read(call->app->store, call->principal, search->ids[i], call->arena,
                             &thread, &call->fault);
        if (!err)
            err = on_kept(search, &thread);
        else if (err == HD_ENOTFOUND)
            err = 0;
    }
    return err;
}

static int thread_search_collect(struct thread_search *search)
{
    struct hd_call *call = search->call;
    size_t own;
    int err;

    if (search->ids)
        err = read_named(search);
    else if (search->text.len > 0 && is_found_by_text(search))
        err = each_having(search, on_kept);
    else if (search->page.sort == BY_UPDATED && (!is_filtered(search) || search->is_common))
        err = hd_threads_scan_updated(call->app->store, call->principal, search->page.is_descending,
                                      on_kept_in_order, search, &call->fault);
    else if (search->page.sort == BY_CREATED && search->is_common)
        err = hd_threads_scan(call->app->store, call->principal, search->page.is_descending,
                              on_kept_in_order, search, &call->fault);
    else
        err =
            hd_threads_scan(call->app->store, call->principal, true, on_kept, search, &call->fault);
    own = search->found_count;
    if (!err)
        err = each_shared(search, on_kept);
    /* Matches of a common word are not counted: the total only shows that there are more. */
    if (!err && search->is_cut && search->is_common)
        search->total = (int64_t)own;
    else if (!err && search->is_cut)
        err = count_all(search);
    search->total += (int64_t)(search->found_count - own);
    if (!err)
        err = show_thread_search_found(search);
    hd_free(search->found);
    return err;
}

/* ---- endpoints -------------------------------------------------------- */

static void thread_search_begin(struct thread_search *search)
{
    hd_buf_init(&search->scratch, MAX_VALUES);
    hd_arena_init(&search->arena, MAX_FOUND);
}

static void thread_search_finish(struct thread_search *search)
{
    hd_buf_fini(&search->scratch);
    hd_arena_fini(&search->arena);
    if (search->is_indexed)
        hd_map_fini(&search->having);
}

static struct hd_step search_threads(struct hd_call *call)
{
    struct thread_search search = {.call = call, .now = hd_clock_now_us()};
    int err = read_filters(call, &search);

    if (!err)
        err = read_ids(call, &search);
    if (!err)
        err = hd_body_page(call, sort_names, &search.page);
    if (!err)
        err = read_thread_search_members(call, &search);
    if (err)
        return hd_step_fail(err);
    thread_search_begin(&search);
    err = find_shared(&search);
    if (!err)
        err = find_text(&search);
    hd_jw_array(&call->jw);
    if (!err)
        err = search.ids || search.page.sort != BY_CREATED || search.shared_count > 0 ||
                      search.text.len > 0
                  ? thread_search_collect(&search)
                  : thread_search_scan(&search);
    hd_jw_array_end(&call->jw);
    thread_search_finish(&search);
    if (!err)
        hd_call_pages(call, search.page.offset, search.page.limit, search.total);
    return hd_step_done(err);
}

static struct hd_step count_threads(struct hd_call *call)
{
    struct thread_search search = {.call = call, .now = hd_clock_now_us(), .counts_only = true};
    int err = read_filters(call, &search);

    if (err)
        return hd_step_fail(err);
    thread_search_begin(&search);
    err = find_shared(&search);
    if (!err)
        err = find_text(&search);
    if (!err)
        err = thread_search_scan(&search);
    thread_search_finish(&search);
    if (!err)
        hd_jw_int(&call->jw, search.total);
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/threads/search",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_SEARCH,
     .work = search_threads,
     .tag = "Threads",
     .summary = "Search threads by metadata, values or status",
     .body = "?ThreadSearch",
     .answer = "[ThreadPart"},
    {.method = HD_METHOD_POST,
     .pattern = "/threads/count",
     .access = HD_ACCESS_USER,
     .on = HD_ON_THREADS_SEARCH,
     .work = count_threads,
     .tag = "Threads",
     .summary = "Count threads",
     .body = "?ThreadCount",
     .answer = "Count"},
};

const struct hd_routes hd_routes_thread_search = {routes, HD_COUNT(routes)};
