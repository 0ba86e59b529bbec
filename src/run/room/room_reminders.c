#include "run/room/room_reminders.h"

#include <string.h>
#include <uv.h>

#include "app/app.h"
#include "app/defer.h"
#include "auth/identity.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/uuid.h"
#include "cluster/cluster.h"
#include "room/room.h"
#include "run/room/room_waiting.h"

#define TICK_MS 500
#define SECOND_US INT64_C(1000000)
#define SEARCH_US (15 * SECOND_US) /* until a search that failed is repeated */
#define MAX_CHECKS 16              /* that one tick begins */

struct room_reminder {
    struct room_reminder *next;
    char principal[HD_PRINCIPAL_SIZE];
    size_t principal_len;
    char thread_id[HD_UUID_SIZE];
    int64_t due_at; /* monotonic */
};

struct hd_room_reminders {
    struct hd_app *app;
    uv_timer_t timer;
    struct room_reminder *list;
    int64_t search_at; /* monotonic; 0: none is due */
    bool is_searching;
};

/* Reads the rooms with waiting messages. */
struct waiting_search {
    struct hd_room_reminders *reminders;
    struct room_reminder *found;
    int err;
};

/* ---- reminders -------------------------------------------------------- */

static struct hd_slice reminded_principal(const struct room_reminder *reminder)
{
    return hd_slice(reminder->principal, reminder->principal_len);
}

static int make_reminder(struct hd_slice principal, struct hd_slice thread_id, int64_t due_at,
                         struct room_reminder **out)
{
    struct room_reminder *reminder;

    if (principal.len >= sizeof(reminder->principal) ||
        thread_id.len >= sizeof(reminder->thread_id))
        return HD_ELIMIT;
    reminder = hd_calloc(1, sizeof(*reminder));
    if (!reminder)
        return HD_ENOMEM;
    reminder->principal_len = principal.len;
    if (principal.len > 0)
        memcpy(reminder->principal, principal.ptr, principal.len);
    memcpy(reminder->thread_id, thread_id.ptr, thread_id.len);
    reminder->due_at = due_at;
    *out = reminder;
    return 0;
}

static void push_reminder(struct room_reminder **list, struct room_reminder *reminder)
{
    reminder->next = *list;
    *list = reminder;
}

static void free_reminders(struct room_reminder *list)
{
    while (list) {
        struct room_reminder *next = list->next;

        hd_free(list);
        list = next;
    }
}

static struct room_reminder *find_reminder(const struct hd_room_reminders *reminders,
                                           struct hd_slice principal, struct hd_slice thread_id)
{
    struct room_reminder *reminder = reminders->list;

    while (reminder && !(hd_slice_eq(hd_slice_cstr(reminder->thread_id), thread_id) &&
                         hd_slice_eq(reminded_principal(reminder), principal)))
        reminder = reminder->next;
    return reminder;
}

void hd_room_reminders_add(struct hd_room_reminders *reminders, struct hd_slice principal,
                           struct hd_slice thread_id, int pause_s)
{
    int64_t due_at = hd_clock_monotonic_us() + pause_s * SECOND_US;
    struct room_reminder *reminder = find_reminder(reminders, principal, thread_id);
    int err = 0;

    if (reminder) {
        reminder->due_at = reminder->due_at < due_at ? reminder->due_at : due_at;
        return;
    }
    err = make_reminder(principal, thread_id, due_at, &reminder);
    if (err)
        hd_log(HD_LOG_ERROR, "room", "a waiting message is not checked again: %s",
               hd_error_text(err));
    else
        push_reminder(&reminders->list, reminder);
}

static void check_due(struct hd_room_reminders *reminders, int64_t now)
{
    struct room_reminder **link = &reminders->list;
    int checks = 0;

    while (*link && checks < MAX_CHECKS) {
        struct room_reminder *reminder = *link;

        if (reminder->due_at > now) {
            link = &reminder->next;
            continue;
        }
        *link = reminder->next;
        hd_room_waiting_check(reminders->app, reminded_principal(reminder),
                              hd_slice_cstr(reminder->thread_id));
        hd_free(reminder);
        checks++;
    }
}

/* ---- searching -------------------------------------------------------- */

static int on_waiting_room(void *arg, const struct hd_room_rec *room)
{
    struct waiting_search *search = arg;
    struct room_reminder *reminder;
    int err;

    if (room->waits.len == 0)
        return 0;
    err = make_reminder(room->principal, room->thread_id, 0, &reminder);
    if (!err)
        push_reminder(&search->found, reminder);
    return err;
}

/* Store thread. */
static void search_waits(void *arg)
{
    struct waiting_search *search = arg;

    search->err = hd_rooms_scan(search->reminders->app->store, on_waiting_room, search, NULL);
}

/* What was found is checked also after an error. */
static void on_waits_searched(void *arg)
{
    struct waiting_search *search = arg;
    struct hd_room_reminders *reminders = search->reminders;

    reminders->is_searching = false;
    while (search->found) {
        struct room_reminder *reminder = search->found;

        search->found = reminder->next;
        push_reminder(&reminders->list, reminder);
    }
    if (search->err) {
        hd_log(HD_LOG_WARN, "room", "waiting messages are searched again later: %s",
               hd_error_text(search->err));
        reminders->search_at = hd_clock_monotonic_us() + SEARCH_US;
    }
    hd_free(search);
}

static void search_waiting_rooms(struct hd_room_reminders *reminders)
{
    struct waiting_search *search = hd_calloc(1, sizeof(*search));

    reminders->search_at = hd_clock_monotonic_us() + SEARCH_US;
    if (!search)
        return;
    search->reminders = reminders;
    if (hd_defer_run(reminders->app->defer, search_waits, on_waits_searched, search)) {
        hd_free(search);
        return;
    }
    reminders->search_at = 0;
    reminders->is_searching = true;
}

static void search_soon(struct hd_room_reminders *reminders)
{
    reminders->search_at = hd_clock_monotonic_us();
}

static void on_peer_gone(void *ctx, struct hd_slice server)
{
    struct hd_room_reminders *reminders = ctx;

    (void)server;
    if (hd_cluster_is_leader(reminders->app->cluster))
        search_soon(reminders);
}

static void on_reminders_lead(void *ctx)
{
    search_soon(ctx);
}

void hd_room_reminders_begin(struct hd_room_reminders *reminders)
{
    if (hd_cluster_is_leader(reminders->app->cluster))
        search_soon(reminders);
}

/* ---- open and close --------------------------------------------------- */

static void on_reminders_tick(uv_timer_t *timer)
{
    struct hd_room_reminders *reminders = timer->data;
    int64_t now = hd_clock_monotonic_us();

    check_due(reminders, now);
    if (!reminders->is_searching && reminders->search_at != 0 && reminders->search_at <= now)
        search_waiting_rooms(reminders);
}

int hd_room_reminders_create(struct hd_app *app, struct hd_room_reminders **out)
{
    struct hd_room_reminders *reminders = hd_calloc(1, sizeof(*reminders));
    int err = 0;

    if (!reminders)
        return HD_ENOMEM;
    (void)uv_timer_init(app->loop, &reminders->timer); /* cannot fail, as the next line */
    (void)uv_timer_start(&reminders->timer, on_reminders_tick, TICK_MS, TICK_MS);
    uv_unref((uv_handle_t *)&reminders->timer);
    reminders->timer.data = reminders;
    reminders->app = app;
    *out = reminders;
    if (hd_cluster_is_on(app->cluster))
        err = hd_cluster_on_gone(app->cluster, on_peer_gone, reminders);
    if (!err && hd_cluster_is_on(app->cluster))
        err = hd_cluster_on_leader(app->cluster, on_reminders_lead, reminders);
    return err;
}

void hd_room_reminders_stop(struct hd_room_reminders *reminders)
{
    if (!reminders)
        return;
    (void)uv_timer_stop(&reminders->timer); /* cannot fail */
}

static void on_reminders_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_room_reminders_destroy(struct hd_room_reminders *reminders)
{
    if (!reminders)
        return;
    free_reminders(reminders->list);
    uv_close((uv_handle_t *)&reminders->timer, on_reminders_closed);
}
