/* The messages of a room: lists, one with its versions, and the runs that it made. */
#include <string.h>

#include "api/api.h"
#include "api/room/room_find.h"
#include "api/state/checkpoint_target.h"
#include "base/utf8.h"
#include "room/room_details.h"
#include "room/room_input.h"

#define LIST_MOST 1000
#define LIST_USUAL 50
#define PAGE 64                    /* messages whose contents are in memory at a time */
#define MAX_PAGE ((size_t)1 << 30) /* bytes */

/* ---- list: the request ------------------------------------------------ */

struct message_list {
    struct hd_call *call;
    struct hd_slice thread_id;
    struct hd_room_message_query query;
    struct hd_slice sender; /* as clients see it */
    struct hd_slice text;
    bool is_descending; /* the order of the response */
    size_t limit;
    struct hd_room_message_rec *list; /* in the order of the query */
    size_t count;
    struct hd_arena arena; /* of one page */
};

static int read_state(struct hd_call *call, int *out)
{
    struct hd_slice name;

    *out = -1;
    if (!hd_params_get(&call->query, HD_S("state"), &name))
        return 0;
    for (int i = 0; hd_room_states[i]; i++) {
        if (hd_slice_eq(name, hd_slice_cstr(hd_room_states[i])))
            *out = i;
    }
    return *out >= 0 ? 0
                     : hd_error_set(&call->fault, HD_EINVAL,
                                    "state: expected pending, ok, stopped, error, stale or "
                                    "deleted");
}

static int read_order(struct hd_call *call, bool *is_descending)
{
    struct hd_slice name;

    *is_descending = false;
    if (!hd_params_get(&call->query, HD_S("order"), &name) || hd_slice_eq(name, HD_S("asc")))
        return 0;
    *is_descending = hd_slice_eq(name, HD_S("desc"));
    return *is_descending ? 0
                          : hd_error_set(&call->fault, HD_EINVAL, "order: expected asc or desc");
}

/* `after` in ascending order pages forward; every other list has the newest messages. */
static int read_list_query(struct hd_call *call, struct message_list *list)
{
    struct hd_room_message_query *query = &list->query;
    int64_t limit = LIST_USUAL;
    int err =
        hd_params_int(&call->query, HD_S("limit"), 1, LIST_MOST, LIST_USUAL, &limit, &call->fault);

    *query = (struct hd_room_message_query){.state = -1, .changed_after = -1};
    if (!err)
        err = hd_params_int(&call->query, HD_S("after"), 0, INT64_MAX - 1, 0, &query->after,
                            &call->fault);
    if (!err)
        err = hd_params_int(&call->query, HD_S("before"), 1, INT64_MAX, 0, &query->before,
                            &call->fault);
    if (!err)
        err = read_state(call, &query->state);
    if (!err)
        err = read_order(call, &list->is_descending);
    (void)hd_params_get(&call->query, HD_S("sender"), &list->sender);
    (void)hd_params_get(&call->query, HD_S("text"), &list->text);
    query->is_newest_first = list->is_descending || !hd_params_has(&call->query, HD_S("after"));
    list->call = call;
    list->limit = (size_t)limit;
    return err;
}

/* ---- list: the messages ----------------------------------------------- */

/* Candidates of one page. */
struct message_page {
    struct message_list *list;
    struct hd_room_message_rec *found;
    size_t count, most;
};

static int on_candidate(void *arg, const struct hd_room_message_rec *message)
{
    struct message_page *page = arg;
    int err;

    if (page->list->sender.len > 0 && !hd_slice_eq(message->sender_id, page->list->sender))
        return 0;
    err = hd_room_message_copy(&page->list->arena, message, &page->found[page->count]);
    if (err)
        return err;
    return ++page->count == page->most;
}

static int read_page(struct message_list *list, struct message_page *page)
{
    struct hd_call *call = list->call;

    page->list = list;
    page->count = 0;
    page->most = list->text.len > 0 ? PAGE : list->limit;
    hd_arena_reset(&list->arena);
    page->found = hd_arena_calloc(&list->arena, page->most, sizeof(*page->found));
    if (!page->found)
        return HD_ENOMEM;
    return hd_room_messages_scan(call->app->store, call->principal, list->thread_id, &list->query,
                                 on_candidate, page, &call->fault);
}

static int has_message_text(struct message_list *list, const struct hd_room_content_rec *content,
                            bool *out)
{
    struct hd_slice *texts;
    size_t count;
    int err;

    *out = false;
    if (content->content.len == 0)
        return 0;
    err = hd_room_content_texts(content->content, &list->arena, &texts, &count);
    for (size_t i = 0; !err && !*out && i < count; i++)
        *out = hd_utf8_finds(texts[i], list->text);
    return err;
}

/* Keeps the candidates with the text. Deleted messages have none. */
static int filter_page(struct message_page *page)
{
    struct message_list *list = page->list;
    struct hd_call *call = list->call;
    struct hd_room_content_rec *contents =
        hd_arena_calloc(&list->arena, page->most, sizeof(*contents));
    size_t kept = 0;
    int err = contents ? hd_room_contents_read(call->app->store, page->found, page->count,
                                               &list->arena, contents, &call->fault)
                       : HD_ENOMEM;

    for (size_t i = 0; !err && i < page->count; i++) {
        bool is_found = false;

        if (page->found[i].state != HD_ROOM_DELETED)
            err = has_message_text(list, &contents[i], &is_found);
        if (is_found)
            page->found[kept++] = page->found[i];
    }
    page->count = kept;
    return err;
}

/* Reads pages until the list is full. */
static int find_messages(struct message_list *list)
{
    struct message_page page;
    bool is_last = false;
    int err = 0;

    list->list = hd_arena_calloc(list->call->arena, list->limit, sizeof(*list->list));
    if (!list->list)
        return HD_ENOMEM;
    while (!err && !is_last && list->count < list->limit) {
        err = read_page(list, &page);
        is_last = err || page.count < page.most;
        if (!is_last && list->query.is_newest_first)
            list->query.before = page.found[page.count - 1].seq;
        else if (!is_last)
            list->query.after = page.found[page.count - 1].seq;
        if (!err && list->text.len > 0)
            err = filter_page(&page);
        for (size_t i = 0; !err && i < page.count && list->count < list->limit; i++)
            err =
                hd_room_message_copy(list->call->arena, &page.found[i], &list->list[list->count++]);
    }
    return err;
}

/* The response has them in ascending or descending order, whatever the query needed. */
static void order_messages(struct message_list *list)
{
    if (list->query.is_newest_first == list->is_descending)
        return;
    for (size_t i = 0; i < list->count / 2; i++) {
        struct hd_room_message_rec other = list->list[i];

        list->list[i] = list->list[list->count - 1 - i];
        list->list[list->count - 1 - i] = other;
    }
}

static int show_page(struct message_list *list, const struct hd_room_message_rec *messages,
                     size_t count)
{
    struct hd_call *call = list->call;
    struct hd_room_details *details;
    int err;

    hd_arena_reset(&list->arena);
    details = hd_arena_calloc(&list->arena, count, sizeof(*details));
    err = details ? hd_room_details_read(call->app->store, messages, count, &list->arena, details,
                                         &call->fault)
                  : HD_ENOMEM;
    for (size_t i = 0; !err && i < count; i++) {
        hd_room_details_view(&call->jw, &messages[i], &details[i]);
        err = call->jw.err;
        call->budget.shown += !err;
    }
    return err;
}

static int show_messages(struct message_list *list)
{
    struct hd_call *call = list->call;
    int err = 0;

    order_messages(list);
    hd_jw_array(&call->jw);
    for (size_t i = 0; !err && i < list->count; i += PAGE)
        err = show_page(list, &list->list[i], list->count - i < PAGE ? list->count - i : PAGE);
    hd_jw_array_end(&call->jw);
    return err;
}

static struct hd_step list_messages(struct hd_call *call)
{
    struct message_list list = {.call = call};
    struct hd_thread_rec thread;
    int err = read_list_query(call, &list);

    if (!err)
        err = hd_call_thread(call, &thread);
    if (err)
        return hd_step_fail(err);
    list.thread_id = thread.id;
    hd_arena_init(&list.arena, MAX_PAGE);
    if (thread.is_room)
        err = find_messages(&list);
    if (!err)
        err = show_messages(&list);
    hd_arena_fini(&list.arena);
    return hd_step_done(err);
}

/* ---- one message ------------------------------------------------------ */

static void put_versions(struct hd_jw *jw, const struct hd_room_content_rec *versions, size_t count)
{
    hd_jw_put_array(jw, "versions");
    for (size_t i = 0; i < count; i++) {
        hd_jw_object(jw);
        hd_jw_put_int(jw, "version", versions[i].version);
        hd_jw_put_raw_or(jw, "content", versions[i].content, "null");
        hd_jw_put_raw_or(jw, "metadata", versions[i].metadata, "null");
        hd_jw_put_timestamp(jw, "created_at", versions[i].created_at);
        hd_jw_object_end(jw);
    }
    hd_jw_array_end(jw);
}

/* Versions are for the author of the message and the owner of the thread. */
static struct hd_step get_message(struct hd_call *call)
{
    struct hd_room_content_rec *versions = NULL;
    struct hd_room_message_rec message;
    struct hd_room_details details;
    struct hd_thread_rec thread;
    size_t count = 0;
    int err = hd_call_thread(call, &thread);

    if (!err)
        err = hd_room_find_message(call, &thread, call->params[1], &message);
    if (!err)
        err = hd_room_details_read(call->app->store, &message, 1, call->arena, &details,
                                   &call->fault);
    if (!err && (call->role == HD_ROLE_OWNER || hd_room_find_is_author(call, &message)))
        err = hd_room_versions_read(call->app->store, thread.principal, thread.id, message.id,
                                    call->arena, &versions, &count, &call->fault);
    if (err)
        return hd_step_fail(err);
    hd_jw_object(&call->jw);
    hd_room_details_view_members(&call->jw, &message, &details);
    put_versions(&call->jw, versions, count);
    hd_jw_object_end(&call->jw);
    return HD_DONE;
}

/* ---- the runs of a message -------------------------------------------- */

/* [message id, version] of the record as {"message_id", "version"}. */
static int put_given(struct hd_jw *jw, struct hd_slice given)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err = given.len > 0 ? hd_json_parse(&json, given, NULL) : 0;

    it = hd_json_iter(hd_json_root(&json));
    hd_jw_put_array(jw, "given");
    while (!err && hd_json_next(&it)) {
        struct hd_json_iter pair = hd_json_iter(it.val);

        hd_jw_object(jw);
        hd_jw_put_val(jw, "message_id", hd_json_next(&pair) ? pair.val : NULL);
        hd_jw_put_val(jw, "version", hd_json_next(&pair) ? pair.val : NULL);
        hd_jw_object_end(jw);
    }
    hd_jw_array_end(jw);
    hd_json_fini(&json);
    return err == HD_EINVAL ? HD_ECORRUPT : err;
}

static int put_message_run(struct hd_call *call, const struct hd_room_run_rec *run,
                           const struct hd_room_view_run *view)
{
    struct hd_jw *jw = &call->jw;
    int err;

    hd_jw_object(jw);
    hd_jw_put_string(jw, "run_id", run->run_id);
    hd_jw_put_string_or_null(jw, "message_id", run->trigger);
    hd_jw_put_string_or_null(jw, "answer", run->answer);
    hd_jw_put_string(jw, "assistant_id", run->assistant_id);
    hd_jw_put_string_or_null(jw, "runtime", run->runtime);
    hd_jw_put_string(jw, "thread_id", run->thread_id);
    hd_jw_put_string(jw, "checkpoint_ns", run->ns);
    hd_jw_put_string_or_null(jw, "checkpoint_id", run->head_after);
    hd_jw_put_string_or_null(jw, "head_before", run->head_before);
    err = put_given(jw, run->given);
    hd_jw_put_string_or_null(jw, "cascade_id", run->cascade);
    hd_jw_put_string_or_null(jw, "status", view->status);
    hd_jw_put_timestamp(jw, "created_at", run->created_at);
    hd_jw_object_end(jw);
    return err;
}

static struct hd_step list_message_runs(struct hd_call *call)
{
    struct hd_room_message_rec message = {.seq = 0};
    struct hd_room_view_run *views = NULL;
    struct hd_room_run_rec *runs = NULL;
    struct hd_thread_rec thread;
    size_t count = 0;
    int err = hd_call_thread(call, &thread);

    if (!err)
        err = hd_room_find_message(call, &thread, call->params[1], &message);
    if (!err)
        err = hd_room_runs_read(call->app->store, thread.principal, thread.id, message.id,
                                call->arena, &runs, &count, &call->fault);
    if (!err)
        err =
            hd_room_details_runs(call->app->store, runs, count, call->arena, &views, &call->fault);
    if (err)
        return hd_step_fail(err);
    hd_jw_array(&call->jw);
    for (size_t i = 0; !err && i < count; i++)
        err = put_message_run(call, &runs[i], &views[i]);
    hd_jw_array_end(&call->jw);
    return hd_step_done(err);
}

static const struct hd_endpoint routes[] = {
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/room/messages",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = list_messages,
     .tag = "Rooms",
     .summary = "List chat messages; the newest ones by default",
     .query = "message_after message_before limit sender message_state message_text message_order",
     .answer = "[RoomMessage"},
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/room/messages/{message_id}",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = get_message,
     .tag = "Rooms",
     .summary = "Get a chat message with its versions",
     .answer = "RoomMessageVersions"},
    {.method = HD_METHOD_GET,
     .pattern = "/threads/{thread_id}/room/messages/{message_id}/runs",
     .access = HD_ACCESS_VIEWER,
     .on = HD_ON_THREADS_READ,
     .work = list_message_runs,
     .tag = "Rooms",
     .summary = "List the runs that a chat message made",
     .answer = "[RoomRun"},
};

const struct hd_routes hd_routes_room_messages = {routes, HD_COUNT(routes)};
