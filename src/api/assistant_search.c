/* Search for assistants. There are few of them, so all are read: matches are kept as their ids and
 * sort keys, and only the requested page is read again. */
#include <stdlib.h>

#include "api/api.h"
#include "api/assistant_view.h"
#include "api/request/authorize.h"
#include "base/alloc.h"

#define MAX_FOUND ((size_t)1 << 30) /* bytes of ids and sorting keys */

enum assistant_sort { BY_CREATED, BY_UPDATED, BY_ID, BY_NAME, BY_GRAPH };

static const char *const sort_names[] = {
    [BY_CREATED] = "created_at", [BY_UPDATED] = "updated_at", [BY_ID] = "assistant_id",
    [BY_NAME] = "name",          [BY_GRAPH] = "graph_id",     NULL};

struct found_assistants {
    int64_t number;
    struct hd_slice text;
    struct hd_slice id;
    struct hd_slice principal;
};

struct assistant_search {
    struct hd_call *call;
    hd_json_val metadata;
    struct hd_slice graph_id;
    struct hd_slice name;
    struct hd_page page;
    unsigned members;
    bool counts_only;

    struct found_assistants *found;
    size_t count, cap;
    struct hd_arena arena; /* of the matches */
};

/* ---- parsing the request */

static int read_filters(struct hd_call *call, struct assistant_search *search)
{
    int err = hd_body_object(call, "metadata", &search->metadata);

    if (!err)
        err = hd_body_string(call, "graph_id", &search->graph_id);
    if (!err)
        err = hd_body_string(call, "name", &search->name);
    return err;
}

static int read_assistant_search_page(struct hd_call *call, struct assistant_search *search)
{
    struct hd_slice *names;
    size_t count;
    int err = hd_body_page(call, sort_names, &search->page);

    if (!err)
        err = hd_body_strings(call, "select", &names, &count);
    return err ? err : hd_assistant_view_select(call, names, count, &search->members);
}

/* ---- matching --------------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Ignores the case of ASCII letters. */
static bool has_part(struct hd_slice text, struct hd_slice part)
{
    for (size_t at = 0; at + part.len <= text.len; at++) {
        size_t same = 0;

        while (same < part.len && lower(text.ptr[at + same]) == lower(part.ptr[same]))
            same++;
        if (same == part.len)
            return true;
    }
    return false;
}

static int assistant_search_matches(struct assistant_search *search,
                                    const struct hd_assistant_rec *assistant, bool *out)
{
    struct hd_json metadata = {NULL};
    int err;

    *out = (search->graph_id.len == 0 || hd_slice_eq(search->graph_id, assistant->graph_id)) &&
           has_part(assistant->name, search->name);
    err = *out ? hd_call_sees(search->call, HD_OF_ASSISTANTS, assistant->metadata, out) : 0;
    if (err || !*out || !search->metadata)
        return err;
    err = hd_json_parse(&metadata, assistant->metadata.len > 0 ? assistant->metadata : HD_S("{}"),
                        &search->call->fault);
    *out = !err && hd_json_contains(hd_json_root(&metadata), search->metadata);
    hd_json_fini(&metadata);
    return err;
}

static int assistant_search_keep(struct assistant_search *search,
                                 const struct hd_assistant_rec *assistant)
{
    const struct hd_slice texts[] = {[BY_NAME] = assistant->name, [BY_GRAPH] = assistant->graph_id};
    struct found_assistants *found;
    int err;

    if (search->count == search->cap) {
        size_t cap = search->cap ? search->cap * 2 : 64;
        struct found_assistants *grown = hd_realloc(search->found, cap * sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        search->found = grown;
        search->cap = cap;
    }
    found = &search->found[search->count];
    *found = (struct found_assistants){.number = 0};
    if (search->page.sort == BY_CREATED)
        found->number = assistant->created_at;
    else if (search->page.sort == BY_UPDATED)
        found->number = assistant->updated_at;
    err = hd_arena_copy(&search->arena, assistant->id, &found->id);
    if (!err)
        err = hd_arena_copy(&search->arena, assistant->principal, &found->principal);
    if (!err && (search->page.sort == BY_NAME || search->page.sort == BY_GRAPH))
        err = hd_arena_copy(&search->arena, texts[search->page.sort], &found->text);
    search->count += !err;
    return err;
}

static int on_assistant(void *arg, const struct hd_assistant_rec *assistant)
{
    struct assistant_search *search = arg;
    bool is_match;
    int err = assistant_search_matches(search, assistant, &is_match);

    if (err || !is_match)
        return err;
    if (search->counts_only) {
        search->count++;
        return 0;
    }
    return assistant_search_keep(search, assistant);
}

/* Shared assistants that the principal has not replaced by its own. */
static int on_shared(void *arg, const struct hd_assistant_rec *assistant)
{
    struct assistant_search *search = arg;
    struct hd_call *call = search->call;
    struct hd_assistant_rec own;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, MAX_FOUND);
    err =
        hd_assistant_read(call->app->store, call->actor, assistant->id, &arena, &own, &call->fault);
    hd_arena_fini(&arena);
    return err == HD_ENOTFOUND ? on_assistant(search, assistant) : err;
}

static int assistant_search_scan(struct assistant_search *search)
{
    struct hd_call *call = search->call;
    int err = hd_assistants_scan(call->app->store, call->actor, on_assistant, search, &call->fault);

    if (!err && call->actor.len > 0)
        err = hd_assistants_scan(call->app->store, hd_slice(NULL, 0), on_shared, search,
                                 &call->fault);
    return err;
}

/* ---- the page --------------------------------------------------------- */

static int assistant_search_compare(const void *a, const void *b)
{
    const struct found_assistants *one = a, *other = b;

    if (one->number != other->number)
        return one->number < other->number ? -1 : 1;
    if (!hd_slice_eq(one->text, other->text))
        return hd_slice_cmp(one->text, other->text);
    return hd_slice_cmp(one->id, other->id);
}

static int compare_descending(const void *a, const void *b)
{
    return assistant_search_compare(b, a);
}

static int assistant_search_show(struct assistant_search *search)
{
    struct hd_call *call = search->call;
    int64_t end = search->page.offset + search->page.limit;
    int err = 0;

    if (search->count > 0)
        qsort(search->found, search->count, sizeof(*search->found),
              search->page.is_descending ? compare_descending : assistant_search_compare);
    hd_jw_array(&call->jw);
    for (int64_t i = search->page.offset; !err && i < end && i < (int64_t)search->count; i++) {
        struct hd_assistant_rec assistant;

        err = hd_assistant_read(call->app->store, search->found[i].principal, search->found[i].id,
                                call->arena, &assistant, &call->fault);
        if (!err)
            hd_assistant_view(&call->jw, &assistant, search->members);
        else if (err == HD_ENOTFOUND) /* deleted a moment ago */
            err = 0;
    }
    hd_jw_array_end(&call->jw);
    if (!err)
        hd_call_pages(call, search->page.offset, search->page.limit, (int64_t)search->count);
    return err;
}

/* ---- endpoints -------------------------------------------------------- */

static struct hd_step search_assistants(struct hd_call *call)
{
    struct assistant_search search = {.call = call};
    int err = read_filters(call, &search);

    if (!err)
        err = read_assistant_search_page(call, &search);
    if (err)
        return hd_step_fail(err);
    hd_arena_init(&search.arena, MAX_FOUND);
    err = assistant_search_scan(&search);
    if (!err)
        err = assistant_search_show(&search);
    hd_free(search.found);
    hd_arena_fini(&search.arena);
    return hd_step_done(err);
}

static struct hd_step count_assistants(struct hd_call *call)
{
    struct assistant_search search = {.call = call, .counts_only = true};
    int err = read_filters(call, &search);

    if (!err)
        err = assistant_search_scan(&search);
    if (!err)
        hd_jw_int(&call->jw, (int64_t)search.count);
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_POST,
     .pattern = "/assistants/search",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_SEARCH,
     .work = search_assistants,
     .tag = "Assistants",
     .summary = "Search assistants",
     .body = "?AssistantSearch",
     .answer = "[AssistantPart"},
    {.method = HD_METHOD_POST,
     .pattern = "/assistants/count",
     .access = HD_ACCESS_USER,
     .on = HD_ON_ASSISTANTS_SEARCH,
     .work = count_assistants,
     .tag = "Assistants",
     .summary = "Count assistants",
     .body = "?AssistantCount",
     .answer = "Count"},
};

const struct hd_routes hd_routes_assistant_search = {routes, HD_COUNT(routes)};
