/* Search for crons, and their JSON. */
#include <stdlib.h>

#include "api/api.h"
#include "api/request/authorize.h"
#include "api/cron_view.h"
#include "base/alloc.h"
#include "records/record.h"
#include "run/assistant_lookup.h"

#define MAX_FOUND ((size_t)1 << 28) /* bytes of the ids that are sorted */

/* ---- views ------------------------------------------------------------ */

struct cron_view {
    const char *name;
    void (*put)(struct hd_jw *jw, const struct hd_cron_rec *cron);
};

static void put_cron_search_text(struct hd_jw *jw, struct hd_slice text)
{
    if (text.len > 0)
        hd_jw_string(jw, text);
    else
        hd_jw_null(jw);
}
static void put_cron_search_time(struct hd_jw *jw, int64_t us)
{
    if (us)
        hd_jw_timestamp(jw, us);
    else
        hd_jw_null(jw);
}

static void put_cron_id(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    hd_jw_string(jw, cron->id);
}
static void put_assistant_id(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    hd_jw_string(jw, cron->assistant_id);
}
static void put_thread_id(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    put_cron_search_text(jw, cron->thread_id);
}
/* A thread that was not created for the cron is always kept. */
static void put_on_run_completed(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    if (cron->thread_id.len > 0)
        hd_jw_null(jw);
    else
        hd_jw_string(jw, cron->keeps_threads ? HD_S("keep") : HD_S("delete"));
}
static void put_end_time(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    put_cron_search_time(jw, cron->end_at);
}
static void put_schedule(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    hd_jw_string(jw, cron->schedule);
}
static void put_timezone(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    put_cron_search_text(jw, cron->timezone);
}
static void put_cron_search_created_at(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    hd_jw_timestamp(jw, cron->created_at);
}
static void put_cron_search_updated_at(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    hd_jw_timestamp(jw, cron->updated_at);
}
static void put_payload(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    hd_jw_raw_or(jw, cron->payload, "{}");
}
/* Always null: the owner is the caller. */
static void put_user_id(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    (void)cron;
    hd_jw_null(jw);
}
static void put_next_run_date(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    put_cron_search_time(jw, cron->next_at);
}
static void put_cron_search_metadata(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    hd_jw_raw_or(jw, cron->metadata, "{}");
}
static void put_enabled(struct hd_jw *jw, const struct hd_cron_rec *cron)
{
    hd_jw_bool(jw, cron->is_enabled);
}

static const struct cron_view views[] = {
    {"cron_id", put_cron_id},
    {"assistant_id", put_assistant_id},
    {"thread_id", put_thread_id},
    {"on_run_completed", put_on_run_completed},
    {"end_time", put_end_time},
    {"schedule", put_schedule},
    {"timezone", put_timezone},
    {"created_at", put_cron_search_created_at},
    {"updated_at", put_cron_search_updated_at},
    {"payload", put_payload},
    {"user_id", put_user_id},
    {"next_run_date", put_next_run_date},
    {"metadata", put_cron_search_metadata},
    {"enabled", put_enabled},
};

static bool is_named(const char *name, const struct hd_slice *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hd_slice_eq(hd_slice_cstr(name), names[i]))
            return true;
    }
    return count == 0;
}

void hd_cron_view(struct hd_jw *jw, const struct hd_cron_rec *cron, const struct hd_slice *names,
                  size_t count)
{
    hd_jw_object(jw);
    for (size_t i = 0; i < HD_COUNT(views); i++) {
        if (!is_named(views[i].name, names, count))
            continue;
        hd_jw_key(jw, hd_slice_cstr(views[i].name));
        views[i].put(jw, cron);
    }
    hd_jw_object_end(jw);
}

int hd_cron_view_check_names(struct hd_call *call, const struct hd_slice *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_known = false;

        for (size_t n = 0; n < HD_COUNT(views); n++)
            is_known = is_known || hd_slice_eq(hd_slice_cstr(views[n].name), names[i]);
        if (!is_known)
            return hd_error_set(&call->fault, HD_EINVAL, "select: a cron has no member \"%.*s\"",
                                (int)(names[i].len < 80 ? names[i].len : 80), names[i].ptr);
    }
    return 0;
}

/* ---- parsing the request */

enum cron_sort { BY_CREATED, BY_UPDATED, BY_NEXT, BY_END, BY_ID, BY_ASSISTANT, BY_THREAD };

static const char *const sort_names[] = {
    [BY_CREATED] = "created_at", [BY_UPDATED] = "updated_at",
    [BY_NEXT] = "next_run_date", [BY_END] = "end_time",
    [BY_ID] = "cron_id",         [BY_ASSISTANT] = "assistant_id",
    [BY_THREAD] = "thread_id",   NULL};

/* A cron that matches, for sorting. */
struct found_crons {
    int64_t number;
    struct hd_slice text;
    struct hd_slice id;
};

struct cron_search {
    struct hd_call *call;
    struct hd_slice assistant_id; /* empty: any */
    struct hd_slice thread_id;
    hd_json_val metadata;
    int enabled; /* -1: both */

    struct hd_page page;
    struct hd_slice *names;
    size_t name_count;

    struct found_crons *found;
    size_t count, cap;
    struct hd_arena arena; /* of the matches */
};

/* An id, or the name of a graph; an unknown one is used unchanged. */
static int read_assistant(struct hd_call *call, struct cron_search *search)
{
    struct hd_assistant_rec assistant;
    struct hd_slice id = {NULL, 0};
    int err = hd_body_string(call, "assistant_id", &id);

    if (err || id.len == 0)
        return err;
    err = hd_assistant_lookup(call->app, call->actor, id, call->arena, &assistant, &call->fault);
    if (err == HD_ENOTFOUND) { /* deleted: its crons may still exist */
        call->fault = (struct heddle_error){0};
        search->assistant_id = id;
        return 0;
    }
    search->assistant_id = assistant.id;
    return err;
}

static int read_filters(struct hd_call *call, struct cron_search *search)
{
    struct hd_slice thread = {NULL, 0};
    bool enabled = false;
    int err = read_assistant(call, search);

    if (!err)
        err = hd_body_string(call, "thread_id", &thread);
    if (!err && thread.len > 0)
        err = hd_call_uuid(call, "thread_id", thread, &search->thread_id);
    if (!err)
        err = hd_body_object(call, "metadata", &search->metadata);
    if (!err)
        err = hd_body_bool(call, "enabled", &enabled);
    search->enabled = hd_body_get(call, "enabled") ? enabled : -1;
    /* Every object contains the empty object. */
    if (hd_json_size(search->metadata) == 0)
        search->metadata = NULL;
    return err;
}

static int read_cron_search_page(struct hd_call *call, struct cron_search *search)
{
    int err = hd_body_page(call, sort_names, &search->page);

    if (!err)
        err = hd_body_strings(call, "select", &search->names, &search->name_count);
    if (!err)
        err = hd_cron_view_check_names(call, search->names, search->name_count);
    return err;
}

/* ---- matching --------------------------------------------------------- */

static int cron_search_matches(struct cron_search *search, const struct hd_cron_rec *cron,
                               bool *out)
{
    struct hd_json json = {NULL};
    int err;

    *out =
        (search->assistant_id.len == 0 || hd_slice_eq(search->assistant_id, cron->assistant_id)) &&
        (search->thread_id.len == 0 || hd_slice_eq(search->thread_id, cron->thread_id)) &&
        (search->enabled < 0 || search->enabled == (int)cron->is_enabled);
    err = *out ? hd_call_sees(search->call, HD_OF_CRONS, cron->metadata, out) : 0;
    if (err || !*out || !search->metadata)
        return err;
    *out = false;
    if (cron->metadata.len == 0)
        return 0;
    err = hd_json_parse(&json, cron->metadata, &search->call->fault);
    *out = !err && hd_json_contains(hd_json_root(&json), search->metadata);
    hd_json_fini(&json);
    return err;
}

/* Missing values sort last, as in SQL. */
static void set_key(const struct cron_search *search, const struct hd_cron_rec *cron,
                    struct found_crons *found)
{
    switch ((enum cron_sort)search->page.sort) {
    case BY_CREATED:
        found->number = cron->created_at;
        break;
    case BY_UPDATED:
        found->number = cron->updated_at;
        break;
    case BY_NEXT:
        found->number = cron->next_at ? cron->next_at : INT64_MAX;
        break;
    case BY_END:
        found->number = cron->end_at ? cron->end_at : INT64_MAX;
        break;
    case BY_ASSISTANT:
        found->text = cron->assistant_id;
        break;
    case BY_THREAD:
        found->number = cron->thread_id.len == 0;
        found->text = cron->thread_id;
        break;
    case BY_ID:
        break;
    }
}

static int on_cron(void *arg, const struct hd_cron_rec *cron)
{
    struct cron_search *search = arg;
    struct found_crons *found;
    bool is_match;
    int err = cron_search_matches(search, cron, &is_match);

    if (err || !is_match)
        return err;
    if (search->count == search->cap) {
        size_t cap = search->cap ? search->cap * 2 : 64;
        struct found_crons *grown = hd_realloc(search->found, cap * sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        search->found = grown;
        search->cap = cap;
    }
    found = &search->found[search->count];
    *found = (struct found_crons){.number = 0};
    set_key(search, cron, found);
    err = hd_arena_copy(&search->arena, found->text, &found->text);
    if (!err)
        err = hd_arena_copy(&search->arena, cron->id, &found->id);
    search->count += !err;
    return err;
}

static int compare_found(const void *a, const void *b)
{
    const struct found_crons *one = a, *other = b;
    int order;

    if (one->number != other->number)
        return one->number < other->number ? -1 : 1;
    order = hd_slice_cmp(one->text, other->text);
    return order != 0 ? order : hd_slice_cmp(one->id, other->id);
}

static int compare_descending(const void *a, const void *b)
{
    return compare_found(b, a);
}

static int show_cron_search_found(struct cron_search *search)
{
    struct hd_call *call = search->call;
    size_t end = (size_t)(search->page.offset + search->page.limit);
    int err = 0;

    if (search->count > 0)
        qsort(search->found, search->count, sizeof(*search->found),
              search->page.is_descending ? compare_descending : compare_found);
    for (size_t i = (size_t)search->page.offset; !err && i < search->count && i < end; i++) {
        struct hd_cron_rec cron;

        err = hd_cron_read(call->app->store, call->actor, search->found[i].id, call->arena, &cron,
                           &call->fault);
        if (!err)
            hd_cron_view(&call->jw, &cron, search->names, search->name_count);
        else if (err == HD_ENOTFOUND) /* deleted a moment ago */
            err = 0;
    }
    return err;
}

/* ---- endpoints -------------------------------------------------------- */

static int cron_search_collect(struct hd_call *call, struct cron_search *search)
{
    search->call = call;
    hd_arena_init(&search->arena, MAX_FOUND);
    return hd_crons_scan(call->app->store, call->actor, on_cron, search, &call->fault);
}

static void cron_search_release(struct cron_search *search)
{
    hd_free(search->found);
    hd_arena_fini(&search->arena);
}

static struct hd_step search_crons(struct hd_call *call)
{
    struct cron_search search = {.call = call};
    int err = read_filters(call, &search);

    if (!err)
        err = read_cron_search_page(call, &search);
    if (err)
        return hd_step_fail(err);
    err = cron_search_collect(call, &search);
    hd_jw_array(&call->jw);
    if (!err)
        err = show_cron_search_found(&search);
    hd_jw_array_end(&call->jw);
    if (!err)
        hd_call_pages(call, search.page.offset, search.page.limit, (int64_t)search.count);
    cron_search_release(&search);
    return hd_step_done(err);
}

static struct hd_step count_crons(struct hd_call *call)
{
    struct cron_search search = {.call = call};
    int err = read_filters(call, &search);

    if (err)
        return hd_step_fail(err);
    err = cron_search_collect(call, &search);
    if (!err)
        hd_jw_int(&call->jw, (int64_t)search.count);
    cron_search_release(&search);
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/runs/crons/search",
     .access = HD_ACCESS_USER,
     .on = HD_ON_CRONS_SEARCH,
     .work = search_crons,
     .tag = "Crons",
     .summary = "Search crons",
     .body = "?CronSearch",
     .answer = "[CronPart"},
    {.method = HD_METHOD_POST,
     .pattern = "/runs/crons/count",
     .access = HD_ACCESS_USER,
     .on = HD_ON_CRONS_SEARCH,
     .work = count_crons,
     .tag = "Crons",
     .summary = "Count crons",
     .body = "?CronCount",
     .answer = "Count"},
};

const struct hd_routes hd_routes_cron_search = {routes, HD_COUNT(routes)};
