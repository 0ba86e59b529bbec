#include "room/room_details.h"

#include "records/record.h"

static struct hd_slice status_name(int status)
{
    return status < 0 ? hd_slice(NULL, 0)
                      : hd_slice_cstr(hd_run_state_name((enum hd_run_state)status));
}

int hd_room_details_runs(struct heddle *store, const struct hd_room_run_rec *runs, size_t count,
                         struct hd_arena *arena, struct hd_room_view_run **out,
                         struct heddle_error *fault)
{
    struct hd_room_view_run *views = hd_arena_calloc(arena, count + 1, sizeof(*views));
    struct hd_run_key *keys = hd_arena_calloc(arena, count + 1, sizeof(*keys));
    int *statuses = hd_arena_calloc(arena, count + 1, sizeof(*statuses));
    int err = 0;

    if (!views || !keys || !statuses)
        return HD_ENOMEM;
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct hd_run_key){runs[i].principal, runs[i].thread_id, runs[i].run_id};
    if (count > 0)
        err = hd_run_statuses_read(store, keys, count, statuses, fault);
    for (size_t i = 0; !err && i < count; i++)
        views[i] = hd_room_view_run_of(&runs[i], status_name(statuses[i]));
    *out = views;
    return err;
}

static int read_triggered(struct heddle *store, const struct hd_room_message_rec *messages,
                          size_t count, struct hd_arena *arena, struct hd_room_details *out,
                          struct heddle_error *fault)
{
    size_t *counts = hd_arena_calloc(arena, count + 1, sizeof(*counts));
    struct hd_room_view_run *views = NULL;
    struct hd_room_run_rec *runs = NULL;
    size_t total = 0;
    int err =
        counts ? hd_room_runs_of(store, messages, count, arena, &runs, counts, fault) : HD_ENOMEM;

    for (size_t i = 0; !err && i < count; i++)
        total += counts[i];
    if (!err)
        err = hd_room_details_runs(store, runs, total, arena, &views, fault);
    for (size_t i = 0; !err && i < count; i++) {
        out[i].runs = views;
        out[i].run_count = counts[i];
        views += counts[i];
    }
    return err;
}

int hd_room_details_read(struct heddle *store, const struct hd_room_message_rec *messages,
                         size_t count, struct hd_arena *arena, struct hd_room_details *out,
                         struct heddle_error *fault)
{
    struct hd_room_content_rec *contents = hd_arena_calloc(arena, count + 1, sizeof(*contents));
    int err = contents ? hd_room_contents_read(store, messages, count, arena, contents, fault)
                       : HD_ENOMEM;

    for (size_t i = 0; !err && i < count; i++) {
        out[i] = (struct hd_room_details){.runs = NULL};
        if (messages[i].state != HD_ROOM_DELETED)
            out[i].content = contents[i];
    }
    return err ? err : read_triggered(store, messages, count, arena, out, fault);
}

void hd_room_details_view(struct hd_jw *jw, const struct hd_room_message_rec *message,
                          const struct hd_room_details *details)
{
    hd_room_view_message(jw, message, &details->content, details->runs, details->run_count);
}

void hd_room_details_view_members(struct hd_jw *jw, const struct hd_room_message_rec *message,
                                  const struct hd_room_details *details)
{
    hd_room_view_message_members(jw, message, &details->content, details->runs, details->run_count);
}
