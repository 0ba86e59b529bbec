#include "api/thread_view.h"

#include <heddle.h>

#include "api/room/room_find.h"
#include "api/state/checkpoint_target.h"
#include "graph/engine/failure.h"
#include "records/participants.h"
#include "room/room_texts.h"
#include "search/thread_texts.h"

#define SHOWS_ROLE 4096
#define SHOWS_LABEL 16384
#define SHOWS_UNREAD 32768

/* ---- values ----------------------------------------------------------- */

/* False: the thread has no checkpoint, or its graph is not served any more. */
static int has_values(struct hd_call *call, const struct hd_checkpoint_target *target,
                      struct hd_slice values, bool *out)
{
    *out = true;
    if (values.len != 2)
        return 0;
    /* {}: a state without values, or no state at all. */
    return hd_checkpoint_target_has(call, target, hd_slice(NULL, 0), out);
}

/* Appends the values at the head of the target; null when it has no state. */
static int write_values(struct hd_call *call, const struct hd_checkpoint_target *target,
                        struct hd_slice only, struct hd_buf *out)
{
    struct hd_failure failure = {NULL, NULL};
    size_t before = out->len;
    struct hd_address at;
    bool is_there;
    int err;

    if (!target->graph)
        return hd_buf_append_slice(out, HD_S("null"));
    at = hd_checkpoint_target_address(call, target, target->chosen);
    at.only = only;
    if (out == &call->out) /* other buffers are temporary */
        at.allowance = &call->budget.allowance;
    err = hd_call_failure(call, hd_state_values(&at, out, &failure), &failure);
    if (!err)
        err = has_values(call, target, hd_slice(out->ptr + before, out->len - before), &is_there);
    if (!err && !is_there) {
        out->len = before;
        err = hd_buf_append_slice(out, HD_S("null"));
    }
    return err;
}

int hd_thread_view_rec_values(struct hd_call *call, const struct hd_thread_rec *thread,
                              struct hd_slice only, struct hd_buf *out)
{
    struct hd_checkpoint_target target = {.thread = *thread};
    int err = 0;

    /* Every update of a state sets a head. */
    if (hd_thread_head_is_set(&thread->head))
        err = hd_checkpoint_target_of_thread(call, &target);
    return err ? err : write_values(call, &target, only, out);
}

int hd_thread_view_run_values(struct hd_call *call, const struct hd_run_rec *run,
                              struct hd_buf *out)
{
    struct hd_checkpoint_target target = {.graph = NULL};
    struct hd_slice ns;
    int err = hd_thread_read(call->app->store, call->principal, run->thread_id, call->arena,
                             &target.thread, &call->fault);

    if (!err)
        err = hd_run_line(run, call->arena, &ns, &call->fault);
    if (!err && hd_slice_eq(ns, target.thread.head.ns))
        return hd_thread_view_rec_values(call, &target.thread, hd_slice(NULL, 0), out);
    if (!err)
        err = hd_checkpoint_target_of_root(call, &target, ns);
    return err ? err : write_values(call, &target, hd_slice(NULL, 0), out);
}

static int write_room_texts(struct hd_call *call, const struct hd_thread_rec *thread,
                            struct hd_buf *out)
{
    struct hd_jw jw;
    int err = hd_buf_append_slice(out, HD_S("{\"state\":"));

    if (!err)
        err = hd_thread_view_rec_values(call, thread, HD_S("messages"), out);
    if (!err)
        err = hd_buf_append_slice(out, HD_S(",\"room\":"));
    hd_jw_init(&jw, out);
    if (!err)
        err = hd_room_texts_write(call->app->store, thread->principal, thread->id, call->arena, &jw,
                                  &call->fault);
    if (!err)
        err = hd_jw_finish(&jw);
    return err ? err : hd_buf_append_byte(out, '}');
}

int hd_thread_view_messages(struct hd_app *app, const struct hd_thread_rec *thread,
                            struct hd_arena *arena, struct hd_buf *out, struct heddle_error *fault)
{
    /* The search index has no request: reads as the owner. */
    struct hd_call call = {.app = app,
                           .arena = arena,
                           .actor = thread->principal,
                           .principal = thread->principal,
                           .role = HD_ROLE_OWNER};
    int err = thread->is_room ? write_room_texts(&call, thread, out)
                              : hd_thread_view_rec_values(&call, thread, HD_S("messages"), out);

    if (err && call.fault.code)
        *fault = call.fault;
    return err;
}

/* ---- members ---------------------------------------------------------- */

struct thread_view {
    struct hd_call *call;
    struct hd_jw *jw;
    const struct hd_thread_rec *thread;
};

static int put_thread_id(struct thread_view *view)
{
    hd_jw_string(view->jw, view->thread->id);
    return 0;
}

static int put_thread_created_at(struct thread_view *view)
{
    hd_jw_timestamp(view->jw, view->thread->created_at);
    return 0;
}

static int put_thread_updated_at(struct thread_view *view)
{
    hd_jw_timestamp(view->jw, view->thread->updated_at);
    return 0;
}

static int put_state_updated_at(struct thread_view *view)
{
    hd_jw_timestamp(view->jw, view->thread->state_updated_at);
    return 0;
}

static int put_thread_metadata(struct thread_view *view)
{
    hd_jw_raw_or(view->jw, view->thread->metadata, "{}");
    return 0;
}

static int put_thread_config(struct thread_view *view)
{
    hd_jw_raw_or(view->jw, view->thread->config, "{}");
    return 0;
}

static int put_status(struct thread_view *view)
{
    hd_jw_string(view->jw, hd_slice_cstr(hd_thread_status_name(view->thread->status)));
    return 0;
}

/* Values are written directly to the writer's buffer. */
static int put_values(struct thread_view *view)
{
    int err = view->jw->err;

    if (!err)
        err = hd_thread_view_rec_values(view->call, view->thread, hd_slice(NULL, 0), view->jw->out);
    hd_jw_raw(view->jw, HD_S(""));
    return err;
}

static int put_interrupts(struct thread_view *view)
{
    hd_jw_raw_or(view->jw, view->thread->interrupts, "{}");
    return 0;
}

static int put_error(struct thread_view *view)
{
    hd_jw_raw_or(view->jw, view->thread->error, "null");
    return 0;
}

/* The requested time to live, and when it ends without further activity. */
static int put_ttl(struct thread_view *view)
{
    struct hd_json json = {NULL};
    struct hd_json_iter it;
    int err;

    if (view->thread->ttl.len == 0) {
        hd_jw_null(view->jw);
        return 0;
    }
    err = hd_json_parse(&json, view->thread->ttl, &view->call->fault);
    it = hd_json_iter(hd_json_root(&json));
    hd_jw_object(view->jw);
    while (hd_json_next(&it)) {
        hd_jw_key(view->jw, it.key);
        hd_jw_val(view->jw, it.val);
    }
    hd_jw_key(view->jw, HD_S("expires_at"));
    if (view->thread->expires_at > 0)
        hd_jw_timestamp(view->jw, view->thread->expires_at);
    else
        hd_jw_null(view->jw);
    hd_jw_object_end(view->jw);
    hd_json_fini(&json);
    return err;
}

static int put_role(struct thread_view *view)
{
    bool is_own = hd_slice_eq(view->thread->principal, view->call->actor);

    hd_jw_string(view->jw, hd_slice_cstr(hd_role_name(is_own ? HD_ROLE_OWNER : view->call->role)));
    return 0;
}

/* Reads every row of the thread's checkpoints. */
static int put_usage(struct thread_view *view)
{
    const struct hd_slice principal = view->thread->principal, id = view->thread->id;
    const struct heddle_thread thread = {{principal.ptr, principal.len}, {id.ptr, id.len}};
    struct heddle_usage usage = {0};
    int err = heddle_thread_usage(view->call->app->store, &thread, &usage, &view->call->fault);

    if (err)
        return err;
    hd_jw_object(view->jw);
    hd_jw_put_int(view->jw, "bytes", usage.bytes);
    hd_jw_put_int(view->jw, "checkpoints", usage.checkpoints);
    hd_jw_object_end(view->jw);
    return 0;
}

/* The start of the first human message, as a label of a thread without a title. */
static int put_label(struct thread_view *view)
{
    struct hd_call *call = view->call;
    struct hd_slice label;
    int err = hd_thread_texts_label(call->app->store, view->thread->principal, view->thread->id,
                                    call->arena, &label, &call->fault);

    if (!err && label.len > 0)
        hd_jw_string(view->jw, label);
    else
        hd_jw_null(view->jw);
    return err;
}

/* Messages of others that the caller has not read. */
static int put_unread(struct thread_view *view)
{
    int64_t unread;
    int err = hd_room_find_unread(view->call, view->thread, &unread);

    hd_jw_int(view->jw, unread);
    return err;
}

/* `put` NULL: clients may request the member, but threads do not have it. */
static const struct member {
    const char *name;
    unsigned bit;
    int (*put)(struct thread_view *view);
} members_table[] = {
    {"thread_id", 4, put_thread_id},
    {"created_at", 8, put_thread_created_at},
    {"updated_at", 16, put_thread_updated_at},
    {"state_updated_at", 32, put_state_updated_at},
    {"metadata", 64, put_thread_metadata},
    {"status", 128, put_status},
    {"config", 256, put_thread_config},
    {"context", 512, NULL},
    {"values", HD_THREAD_SHOWS_VALUES, put_values},
    {"interrupts", 1024, put_interrupts},
    {"error", 2048, put_error},
    {"ttl", HD_THREAD_SHOWS_TTL, put_ttl},
    {"usage", HD_THREAD_SHOWS_USAGE, put_usage},
    {"role", SHOWS_ROLE, put_role},
    {"label", SHOWS_LABEL, put_label},
    {"unread", SHOWS_UNREAD, put_unread},
};

unsigned hd_thread_view_all(void)
{
    unsigned members = 0;

    for (size_t i = 0; i < HD_COUNT(members_table); i++)
        members |= members_table[i].bit;
    return members & ~(unsigned)(HD_THREAD_SHOWS_TTL | HD_THREAD_SHOWS_USAGE | SHOWS_LABEL);
}

unsigned hd_thread_view_member(struct hd_slice name)
{
    for (size_t i = 0; i < HD_COUNT(members_table); i++) {
        if (hd_slice_eq(name, hd_slice_cstr(members_table[i].name)))
            return members_table[i].bit;
    }
    return 0;
}

int hd_thread_view_select(struct hd_call *call, const struct hd_slice *names, size_t count,
                          unsigned *members)
{
    *members = count == 0 ? hd_thread_view_all() : 0;
    for (size_t i = 0; i < count; i++) {
        unsigned member = hd_thread_view_member(names[i]);

        if (member == 0)
            return hd_error_set(&call->fault, HD_EINVAL, "select: threads have no \"%.*s\"",
                                (int)(names[i].len < 80 ? names[i].len : 80), names[i].ptr);
        *members |= member;
    }
    return 0;
}

int hd_thread_view_write(struct hd_call *call, struct hd_jw *jw, const struct hd_thread_rec *thread,
                         unsigned members)
{
    struct thread_view view = {call, jw, thread};
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(members_table); i++) {
        const struct member *member = &members_table[i];

        if (!(members & member->bit) || !member->put)
            continue;
        if (member->bit == SHOWS_ROLE && !call->identity)
            continue; /* only with authentication */
        if (member->bit == SHOWS_UNREAD && !thread->is_room)
            continue;
        hd_jw_key(jw, hd_slice_cstr(member->name));
        err = member->put(&view);
    }
    return err ? err : jw->err;
}

int hd_thread_view(struct hd_call *call, const struct hd_thread_rec *thread, unsigned members)
{
    int err;

    hd_jw_object(&call->jw);
    err = hd_thread_view_write(call, &call->jw, thread, members);
    hd_jw_object_end(&call->jw);
    return err;
}
