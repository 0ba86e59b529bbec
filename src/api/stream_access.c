#include "api/stream_access.h"

#include "app/defer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "gate/auth_service.h"
#include "records/api_keys.h"
#include "records/participants.h"

#define INTERVAL_MS 2000
#define MAX_LOOKED 1000 /* streams per check */
#define MAX_ARENA ((size_t)16 << 20)

struct hd_stream_accesses {
    struct hd_app *app;
    uv_timer_t timer;
    struct hd_stream_access *first;
    uint64_t last_number;
    bool is_looking;
    bool is_closed;
    unsigned refs; /* held by the owner until the timer is closed, and by a running check */
};

int hd_stream_access_status(enum hd_stream_access_end why)
{
    return why == HD_STREAM_ACCESS_CREDENTIAL ? 401 : why == HD_STREAM_ACCESS_ROLE ? 403 : 404;
}

const char *hd_stream_access_text(enum hd_stream_access_end why)
{
    switch (why) {
    case HD_STREAM_ACCESS_CREDENTIAL:
        return "the credentials are no longer valid";
    case HD_STREAM_ACCESS_ROLE:
        return "viewers of a thread may not change it";
    default:
        return "the thread is no longer shared with you";
    }
}

/* ---- streams to check ------------------------------------------------- */

/* The credential of the request: the administrator's when it acts for another user. */
static const struct hd_identity *credential(const struct hd_call *call)
{
    return call->by ? call->by : call->identity;
}

static bool is_shared(const struct hd_call *call)
{
    return !hd_slice_eq(call->principal, call->actor);
}

static enum hd_role needed(const struct hd_endpoint *route, bool may_change)
{
    if (route->access == HD_ACCESS_OWNER)
        return HD_ROLE_OWNER;
    return may_change || route->access == HD_ACCESS_EDITOR ? HD_ROLE_EDITOR : HD_ROLE_VIEWER;
}

/* A stream to check on a store thread. In the arena of the check. */
struct glance {
    uint64_t number;
    struct hd_identity *identity;
    struct hd_slice owner, thread_id;
    struct hd_slice key_id; /* empty: authenticated by a token */
    bool is_shared;
    enum hd_role needed;
    enum hd_stream_access_end end;
};

struct look {
    struct hd_stream_accesses *watches;
    struct hd_arena arena;
    struct glance *glances;
    size_t count;
    struct hd_map keys; /* key ids to good_key or bad_key: each key is read once */
    struct heddle_error fault;
    int err;
};

static char good_key[1], bad_key[1];

/* ---- the check (store thread) ----------------------------------------- */

static int read_stream_access_key(struct look *look, struct hd_slice id, bool *is_good)
{
    struct hd_key_rec record;
    int err = hd_key_read(look->watches->app->store, id, &look->arena, &record, &look->fault);

    *is_good = !err && record.key.revoked_at == 0 &&
               (record.key.expires_at == 0 || record.key.expires_at > hd_clock_now_us());
    return err == HD_ENOTFOUND ? 0 : err;
}

static int check_stream_access_key(struct look *look, struct glance *glance)
{
    const char *known = hd_map_get(&look->keys, glance->key_id);
    bool is_good = known == good_key;
    int err = 0;

    if (!known)
        err = read_stream_access_key(look, glance->key_id, &is_good);
    if (!err && !known)
        err = hd_map_put(&look->keys, glance->key_id, is_good ? good_key : bad_key);
    if (!err && !is_good)
        glance->end = HD_STREAM_ACCESS_CREDENTIAL;
    return err;
}

static int check_part(struct look *look, struct glance *glance)
{
    const struct hd_identity *identity = glance->identity;
    enum hd_role role = HD_ROLE_NONE;
    struct hd_slice owner;
    int err = hd_participation_find(look->watches->app->store, identity->principal,
                                    identity->organisations, identity->organisation_count,
                                    glance->thread_id, &look->arena, &owner, &role, &look->fault);

    if (err && err != HD_ENOTFOUND)
        return err;
    if (err == HD_ENOTFOUND || !hd_slice_eq(owner, glance->owner))
        glance->end = HD_STREAM_ACCESS_GONE;
    else if (role < glance->needed)
        glance->end = HD_STREAM_ACCESS_ROLE;
    return 0;
}

static void do_look(void *arg)
{
    struct look *look = arg;

    for (size_t i = 0; !look->err && i < look->count; i++) {
        struct glance *glance = &look->glances[i];

        if (glance->key_id.len > 0)
            look->err = check_stream_access_key(look, glance);
        if (!look->err && glance->end == HD_STREAM_ACCESS_CONTINUES && glance->is_shared)
            look->err = check_part(look, glance);
    }
}

/* ---- before and after a check (loop) ---------------------------------- */

static void stream_access_release(struct hd_stream_accesses *watches)
{
    if (--watches->refs == 0)
        hd_free(watches);
}

static struct hd_stream_access *stream_access_find(struct hd_stream_accesses *watches,
                                                   uint64_t number)
{
    struct hd_stream_access *watch = watches->first;

    while (watch && watch->number != number)
        watch = watch->next;
    return watch;
}

static void free_look(struct look *look)
{
    for (size_t i = 0; i < look->count; i++)
        hd_identity_unref(look->glances[i].identity);
    hd_map_fini(&look->keys);
    hd_arena_fini(&look->arena);
    hd_free(look);
}

static void look_at_due(struct hd_stream_accesses *watches);

static void end_those(struct look *look)
{
    struct hd_stream_accesses *watches = look->watches;

    for (size_t i = 0; i < look->count; i++) {
        const struct glance *glance = &look->glances[i];
        struct hd_stream_access *watch;

        if (glance->end == HD_STREAM_ACCESS_CONTINUES)
            continue;
        /* The cached verdict of the key must not authenticate another request. */
        if (glance->end == HD_STREAM_ACCESS_CREDENTIAL && watches->app->auth_service)
            hd_auth_service_forget_key(watches->app->auth_service, glance->key_id);
        watch = stream_access_find(watches, glance->number);
        if (watch)
            watch->fn(watch->ctx, glance->end);
    }
}

static void look_done(void *arg)
{
    struct look *look = arg;
    struct hd_stream_accesses *watches = look->watches;

    if (look->err)
        hd_log(HD_LOG_WARN, "api", "the access of open streams could not be checked: %s",
               look->fault.code ? look->fault.text : hd_error_text(look->err));
    watches->is_looking = false;
    if (!watches->is_closed) {
        end_those(look);
        if (!look->err) /* after an error the timer retries */
            look_at_due(watches);
    }
    free_look(look);
    stream_access_release(watches);
}

static size_t count_due(const struct hd_stream_accesses *watches)
{
    size_t count = 0;

    for (const struct hd_stream_access *watch = watches->first; watch; watch = watch->next)
        count += watch->is_due;
    return count < MAX_LOOKED ? count : MAX_LOOKED;
}

static int stream_access_fill(struct look *look, size_t count)
{
    int err = 0;

    look->glances = hd_arena_calloc(&look->arena, count, sizeof(*look->glances));
    if (!look->glances)
        return HD_ENOMEM;
    for (struct hd_stream_access *watch = look->watches->first;
         !err && watch && look->count < count; watch = watch->next) {
        const struct hd_call *call = watch->call;
        struct glance *glance = &look->glances[look->count];

        if (!watch->is_due)
            continue;
        *glance = (struct glance){.number = watch->number,
                                  .identity = hd_identity_ref(call->identity),
                                  .is_shared = is_shared(call),
                                  .needed = watch->needed};
        look->count++;
        err = hd_arena_copy(&look->arena, call->principal, &glance->owner);
        if (!err)
            err = hd_arena_copy(&look->arena, watch->thread_id, &glance->thread_id);
        if (!err)
            err = hd_arena_copy(&look->arena, credential(call)->key_id, &glance->key_id);
        watch->is_due = false;
    }
    return err;
}

static void look_at_due(struct hd_stream_accesses *watches)
{
    size_t count = count_due(watches);
    struct look *look;
    int err;

    if (watches->is_looking || count == 0)
        return;
    look = hd_calloc(1, sizeof(*look));
    if (!look)
        return; /* they stay due */
    look->watches = watches;
    hd_arena_init(&look->arena, MAX_ARENA);
    hd_map_init(&look->keys, MAX_LOOKED);
    err = stream_access_fill(look, count);
    if (!err)
        err = hd_defer_run(watches->app->defer, do_look, look_done, look);
    if (err) {
        free_look(look);
        return;
    }
    watches->is_looking = true;
    watches->refs++;
}

/* ---- time ------------------------------------------------------------- */

/* Searches from the start each time: ending one response may continue and end others. */
static struct hd_stream_access *find_over(const struct hd_stream_accesses *watches, int64_t now)
{
    const struct hd_auth_service *auth_service = watches->app->auth_service;

    for (struct hd_stream_access *watch = watches->first; watch; watch = watch->next) {
        const struct hd_identity *shown = credential(watch->call);

        if ((shown->expires_at != 0 && shown->expires_at <= now) ||
            (auth_service && hd_auth_service_is_withdrawn(auth_service, shown->fingerprint)))
            return watch;
    }
    return NULL;
}

static void on_stream_access_timer(uv_timer_t *timer)
{
    struct hd_stream_accesses *watches = timer->data;
    int64_t now = hd_clock_now_us();
    struct hd_stream_access *watch;

    while ((watch = find_over(watches, now)) != NULL)
        watch->fn(watch->ctx, HD_STREAM_ACCESS_CREDENTIAL);
    for (watch = watches->first; watch; watch = watch->next) {
        if (is_shared(watch->call) || credential(watch->call)->key_id.len > 0)
            watch->is_due = true;
    }
    look_at_due(watches);
    if (!watches->first)
        uv_timer_stop(timer);
}

/* ---- public functions ------------------------------------------------- */

int hd_stream_accesses_create(struct hd_app *app, struct hd_stream_accesses **out)
{
    struct hd_stream_accesses *watches = hd_calloc(1, sizeof(*watches));

    if (!watches)
        return HD_ENOMEM;
    if (uv_timer_init(app->loop, &watches->timer)) {
        hd_free(watches);
        return HD_EIO;
    }
    watches->app = app;
    watches->refs = 1;
    watches->timer.data = watches;
    uv_unref((uv_handle_t *)&watches->timer);
    *out = watches;
    return 0;
}

static void on_stream_access_closed(uv_handle_t *handle)
{
    stream_access_release(handle->data);
}

void hd_stream_accesses_destroy(struct hd_stream_accesses *watches)
{
    if (!watches)
        return;
    watches->is_closed = true;
    uv_close((uv_handle_t *)&watches->timer, on_stream_access_closed);
}

void hd_stream_access_start(struct hd_stream_access *watch, const struct hd_call *call,
                            struct hd_slice thread_id, bool may_change, hd_stream_access_fn fn,
                            void *ctx)
{
    struct hd_stream_accesses *watches = hd_api_stream_accesses(call->api);

    *watch = (struct hd_stream_access){.fn = fn,
                                       .ctx = ctx,
                                       .call = call,
                                       .thread_id = thread_id,
                                       .needed = needed(call->route, may_change)};
    if (!call->identity)
        return;
    if (!watches->first)
        uv_timer_start(&watches->timer, on_stream_access_timer, INTERVAL_MS, INTERVAL_MS);
    watch->number = ++watches->last_number;
    watch->next = watches->first;
    watch->link = &watches->first;
    if (watch->next)
        watch->next->link = &watch->next;
    watches->first = watch;
    /* Access may have ended between authentication and the registration of the stream. */
    watch->is_due = is_shared(call);
    if (watch->is_due)
        look_at_due(watches);
}

void hd_stream_access_stop(struct hd_stream_access *watch)
{
    if (!watch->link)
        return;
    *watch->link = watch->next;
    if (watch->next)
        watch->next->link = watch->link;
    watch->link = NULL;
    watch->number = 0;
}

void hd_stream_accesses_recheck(struct hd_stream_accesses *watches, struct hd_slice owner,
                                struct hd_slice thread_id)
{
    for (struct hd_stream_access *watch = watches->first; watch; watch = watch->next) {
        if (is_shared(watch->call) && hd_slice_eq(watch->call->principal, owner) &&
            hd_slice_eq(watch->thread_id, thread_id))
            watch->is_due = true;
    }
    look_at_due(watches);
}
