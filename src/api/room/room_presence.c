#include "api/room/room_presence.h"

#include <string.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "events/event_log.h"
#include "records/stream_modes.h"

#define INTERVAL_MS 1000 /* between two events of a kind */
#define TICK_MS 100
#define MAX_ROOMS ((size_t)1 << 20)
#define MAX_ACTIVE 1000 /* people of a room whose latest events are kept */
#define MAX_EVENT ((size_t)1 << 20)
#define MAX_NAMES ((size_t)1 << 16) /* bytes of a person, and of a room's key */

/* The latest events of a person. */
struct active_person {
    struct hd_arena names;
    struct hd_room_person person;
    uint64_t typed_at, read_at;
    int64_t seq; /* of the read mark that is to be sent; 0: none */
    struct active_person *next;
};

struct hd_present_room {
    struct hd_room_presences *presences;
    struct hd_arena names;
    struct hd_slice principal, thread_id, key;
    struct hd_room_presence *first;
    struct active_person *active;
    size_t active_count;
    bool is_off;
    bool is_changed; /* the people are to be sent */
    uint64_t sent_at;
};

struct hd_room_presences {
    struct hd_app *app;
    uv_timer_t timer; /* runs while an event waits */
    struct hd_map rooms;
};

/* ---- rooms ------------------------------------------------------------ */

static int make_room_key(struct hd_arena *arena, struct hd_slice principal,
                         struct hd_slice thread_id, struct hd_slice *out)
{
    char *text = hd_arena_printf(arena, "%.*s:%.*s", (int)principal.len, principal.ptr,
                                 (int)thread_id.len, thread_id.ptr);

    if (!text)
        return HD_ENOMEM;
    *out = hd_slice_cstr(text);
    return 0;
}

static void free_active(struct active_person *active)
{
    hd_arena_fini(&active->names);
    hd_free(active);
}

static void free_present_room(struct hd_present_room *room)
{
    while (room->active) {
        struct active_person *next = room->active->next;

        free_active(room->active);
        room->active = next;
    }
    hd_arena_fini(&room->names);
    hd_free(room);
}

static struct hd_present_room *find_present_room(struct hd_room_presences *presences,
                                                 struct hd_slice principal,
                                                 struct hd_slice thread_id)
{
    struct hd_present_room *room = NULL;
    struct hd_arena arena;
    struct hd_slice key;

    hd_arena_init(&arena, MAX_NAMES);
    if (!make_room_key(&arena, principal, thread_id, &key))
        room = hd_map_get(&presences->rooms, key);
    hd_arena_fini(&arena);
    return room;
}

static struct hd_present_room *make_present_room(struct hd_room_presences *presences,
                                                 struct hd_slice principal,
                                                 struct hd_slice thread_id)
{
    struct hd_present_room *room = hd_calloc(1, sizeof(*room));

    if (!room)
        return NULL;
    room->presences = presences;
    hd_arena_init(&room->names, MAX_NAMES);
    if (make_room_key(&room->names, principal, thread_id, &room->key) ||
        hd_arena_copy(&room->names, principal, &room->principal) ||
        hd_arena_copy(&room->names, thread_id, &room->thread_id) ||
        hd_map_put(&presences->rooms, room->key, room)) {
        free_present_room(room);
        return NULL;
    }
    return room;
}

/* ---- sending ---------------------------------------------------------- */

/* Ends the data and sends it. May end streams, whose presences leave. */
static void send_presence(struct hd_present_room *room, const char *name, struct hd_jw *jw,
                          struct hd_buf *data)
{
    struct hd_event_log *log =
        hd_event_log_find(room->presences->app->event_logs, room->principal, room->thread_id);
    int err;

    hd_jw_object_end(jw);
    err = hd_jw_finish(jw);
    if (!err && log)
        err = hd_event_log_send(log, HD_MODE_PRESENCE, hd_slice_cstr(name), hd_buf_slice(data));
    if (err)
        hd_log(HD_LOG_WARN, "room", "%s was not sent: %s", name, hd_error_text(err));
    hd_buf_fini(data);
}

static void begin_presence(struct hd_jw *jw, struct hd_buf *data)
{
    hd_buf_init(data, MAX_EVENT);
    hd_jw_init(jw, data);
    hd_jw_object(jw);
}

static bool is_listed_before(const struct hd_present_room *room,
                             const struct hd_room_presence *presence)
{
    for (const struct hd_room_presence *at = room->first; at != presence; at = at->next) {
        if (hd_slice_eq(at->person.key, presence->person.key))
            return true;
    }
    return false;
}

static void send_people(struct hd_present_room *room)
{
    struct hd_buf data;
    struct hd_jw jw;

    begin_presence(&jw, &data);
    hd_jw_put_array(&jw, "people");
    for (const struct hd_room_presence *at = room->first; at; at = at->next) {
        if (!is_listed_before(room, at))
            hd_room_view_person(&jw, &at->person);
    }
    hd_jw_array_end(&jw);
    send_presence(room, "room/presence", &jw, &data);
}

static void send_typing(struct hd_present_room *room, const struct hd_room_person *person)
{
    struct hd_buf data;
    struct hd_jw jw;

    begin_presence(&jw, &data);
    hd_jw_key(&jw, HD_S("person"));
    hd_room_view_person(&jw, person);
    send_presence(room, "room/typing", &jw, &data);
}

static void send_read(struct hd_present_room *room, const struct active_person *active, int64_t seq)
{
    struct hd_buf data;
    struct hd_jw jw;

    begin_presence(&jw, &data);
    hd_jw_key(&jw, HD_S("reader"));
    hd_room_view_person(&jw, &active->person);
    hd_jw_put_int(&jw, "seq", seq);
    send_presence(room, "room/read", &jw, &data);
}

/* ---- what waits ------------------------------------------------------- */

static bool is_due(const struct hd_present_room *room, uint64_t at)
{
    return at == 0 || uv_now(room->presences->timer.loop) >= at + INTERVAL_MS;
}

/* Sends one event that is due; false: none is. */
static bool send_due(struct hd_present_room *room)
{
    uint64_t now = uv_now(room->presences->timer.loop);

    if (room->is_changed && is_due(room, room->sent_at)) {
        room->is_changed = false;
        room->sent_at = now;
        if (room->first && !room->is_off)
            send_people(room);
        return true;
    }
    for (struct active_person *at = room->active; at; at = at->next) {
        int64_t seq = at->seq;

        if (seq == 0 || !is_due(room, at->read_at))
            continue;
        at->seq = 0;
        at->read_at = now;
        if (!room->is_off)
            send_read(room, at, seq);
        return true;
    }
    return false;
}

static bool has_waiting(const struct hd_present_room *room)
{
    if (room->is_changed)
        return true;
    for (const struct active_person *at = room->active; at; at = at->next) {
        if (at->seq > 0)
            return true;
    }
    return false;
}

static void end_present_room(struct hd_present_room *room)
{
    hd_map_remove(&room->presences->rooms, room->key);
    free_present_room(room);
}

/*
 * Sending may end streams, and so change the rooms: only the timer frees rooms, one at a time, when
 * they have no streams.
 */
static void on_presence_timer(uv_timer_t *timer)
{
    struct hd_room_presences *presences = timer->data;
    struct hd_present_room *ended = NULL;
    struct hd_slice key;
    bool is_waiting = false;
    void *value;
    size_t pos = 0;

    while (hd_map_next(&presences->rooms, &pos, &key, &value)) {
        struct hd_present_room *room = value;

        while (send_due(room))
            continue;
        is_waiting |= has_waiting(room);
        if (!room->first && !room->is_changed)
            ended = room;
    }
    if (ended)
        end_present_room(ended);
    if (!is_waiting && !ended)
        uv_timer_stop(timer);
}

static void wait_for_due(struct hd_room_presences *presences)
{
    if (!uv_is_active((uv_handle_t *)&presences->timer))
        uv_timer_start(&presences->timer, on_presence_timer, 0, TICK_MS);
}

/* ---- people ----------------------------------------------------------- */

static struct active_person *make_active(struct hd_present_room *room,
                                         const struct hd_room_person *person)
{
    struct active_person *active;

    if (room->active_count == MAX_ACTIVE)
        return NULL;
    active = hd_calloc(1, sizeof(*active));
    if (!active)
        return NULL;
    active->person.kind = person->kind;
    hd_arena_init(&active->names, MAX_NAMES);
    if (hd_arena_copy(&active->names, person->key, &active->person.key) ||
        hd_arena_copy(&active->names, person->id, &active->person.id) ||
        hd_arena_copy(&active->names, person->name, &active->person.name)) {
        free_active(active);
        return NULL;
    }
    active->next = room->active;
    room->active = active;
    room->active_count++;
    return active;
}

/* NULL: no memory, or too many people; their events are left out. */
static struct active_person *find_active(struct hd_present_room *room,
                                         const struct hd_room_person *person)
{
    for (struct active_person *at = room->active; at; at = at->next) {
        if (hd_slice_eq(at->person.key, person->key))
            return at;
    }
    return make_active(room, person);
}

void hd_room_presence_enter(struct hd_room_presences *presences, struct hd_room_presence *presence,
                            struct hd_slice principal, struct hd_slice thread_id,
                            const struct hd_room_person *person)
{
    struct hd_present_room *room = find_present_room(presences, principal, thread_id);

    if (!room)
        room = make_present_room(presences, principal, thread_id);
    if (!room)
        return;
    presence->room = room;
    presence->person = *person;
    presence->next = room->first;
    presence->link = &room->first;
    if (room->first)
        room->first->link = &presence->next;
    room->first = presence;
    room->is_changed = true;
    wait_for_due(presences);
}

void hd_room_presence_leave(struct hd_room_presence *presence)
{
    struct hd_present_room *room = presence->room;

    if (!room)
        return;
    *presence->link = presence->next;
    if (presence->next)
        presence->next->link = presence->link;
    presence->room = NULL;
    room->is_changed = true;
    wait_for_due(room->presences);
}

void hd_room_presence_switch(struct hd_room_presences *presences, struct hd_slice principal,
                             struct hd_slice thread_id, bool is_on)
{
    struct hd_present_room *room = find_present_room(presences, principal, thread_id);

    if (!room || room->is_off == !is_on)
        return;
    room->is_off = !is_on;
    room->is_changed = is_on;
    wait_for_due(presences);
}

void hd_room_presence_typing(struct hd_room_presences *presences, struct hd_slice principal,
                             struct hd_slice thread_id, const struct hd_room_person *person)
{
    struct hd_present_room *room = find_present_room(presences, principal, thread_id);
    struct active_person *active = room && !room->is_off ? find_active(room, person) : NULL;

    if (!active || !is_due(room, active->typed_at))
        return;
    active->typed_at = uv_now(presences->timer.loop);
    send_typing(room, person);
}

void hd_room_presence_read(struct hd_room_presences *presences, struct hd_slice principal,
                           struct hd_slice thread_id, const struct hd_room_person *person,
                           int64_t seq)
{
    struct hd_present_room *room = find_present_room(presences, principal, thread_id);
    struct active_person *active = room && !room->is_off ? find_active(room, person) : NULL;

    if (!active || seq <= 0)
        return;
    active->seq = seq;
    wait_for_due(presences);
}

/* ---- create and destroy ----------------------------------------------- */

int hd_room_presences_create(struct hd_app *app, struct hd_room_presences **out)
{
    struct hd_room_presences *presences = hd_calloc(1, sizeof(*presences));

    if (!presences)
        return HD_ENOMEM;
    if (uv_timer_init(app->loop, &presences->timer)) {
        hd_free(presences);
        return HD_EIO;
    }
    presences->timer.data = presences;
    uv_unref((uv_handle_t *)&presences->timer);
    presences->app = app;
    hd_map_init(&presences->rooms, MAX_ROOMS);
    *out = presences;
    return 0;
}

static void on_presences_closed(uv_handle_t *handle)
{
    hd_free(handle->data);
}

void hd_room_presences_destroy(struct hd_room_presences *presences)
{
    struct hd_slice key;
    void *value;
    size_t pos = 0;

    if (!presences)
        return;
    while (hd_map_next(&presences->rooms, &pos, &key, &value))
        free_present_room(value);
    hd_map_fini(&presences->rooms);
    uv_close((uv_handle_t *)&presences->timer, on_presences_closed);
}
