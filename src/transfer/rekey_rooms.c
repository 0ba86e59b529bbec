/*
 * People in rooms of others: they are named in rows of the rooms' owners, as senders, readers,
 * those who added agents, and editors.
 *
 * Each room changes by its revision, so that no edit by a server is lost.
 */
#include <string.h>

#include "base/map.h"
#include "records/principals.h"
#include "records/record.h"
#include "records/record_internal.h"
#include "room/room.h"
#include "store/rows.h"
#include "transfer/rekey_internal.h"

#define MAX_PRINCIPALS ((size_t)1 << 24)
#define MAX_ROOM ((size_t)1 << 30)
#define BATCH_ROWS 500

struct room_mover {
    struct hd_rekey *rekey;
    struct heddle_error *fault;
    struct hd_arena names; /* of the map */
    struct hd_map moved;   /* from a principal to the one that it became: struct hd_slice */
    struct hd_arena arena; /* of one attempt */
    struct hd_room_rec room;
    struct hd_slice principal, thread_id; /* of the room */
    struct hd_batch_builder batch;
    size_t rows; /* that change, in the batch */
};

/* ---- who has moved ---------------------------------------------------- */

static int on_any_principal(void *arg, const struct hd_principal_rec *principal)
{
    struct room_mover *m = arg;
    struct hd_slice *to;
    int err;

    if (principal->state != HD_PRINCIPAL_MOVED || principal->moved_to.len == 0)
        return 0;
    to = hd_arena_calloc(&m->names, 1, sizeof(*to));
    err = to ? hd_arena_copy(&m->names, principal->moved_to, to) : HD_ENOMEM;
    return err ? err : hd_map_put(&m->moved, principal->id, to);
}

/* True if *principal has moved: it becomes the new one. */
static bool follow_principal(const struct room_mover *m, struct hd_slice *principal)
{
    const struct hd_slice *to = hd_map_get(&m->moved, *principal);

    if (to)
        *principal = *to;
    return to != NULL;
}

/* ---- rows that name a person ------------------------------------------ */

struct person_place {
    enum hd_table_id table;
    unsigned column;
};

struct person_scan {
    struct room_mover *mover;
    const struct person_place *place;
};

/* The key may change: the row is deleted and added. */
static int on_person_row(void *arg, size_t which, const struct hd_cell *cells)
{
    const struct person_scan *scan = arg;
    struct room_mover *m = scan->mover;
    enum hd_table_id table = scan->place->table;
    struct hd_slice person = cells[scan->place->column].bytes;
    struct hd_cell row[HD_MAX_COLUMNS];
    int err;

    (void)which;
    if (!follow_principal(m, &person))
        return 0;
    err = hd_record_keep(&m->arena, table, cells, row);
    if (!err)
        err = hd_batch_delete(&m->batch, table, row, hd_tables[table].key_count);
    row[scan->place->column].bytes = person;
    if (!err)
        err = hd_batch_row(&m->batch, HD_OP_PUT, table, row);
    m->rows++;
    return err ? err : m->rows >= BATCH_ROWS;
}

static int move_people(struct room_mover *m, const struct person_place *place)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(m->principal), hd_cell_bytes(m->thread_id)};
    const struct hd_query query = {.table = place->table,
                                   .index = HD_PRIMARY,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix),
                                   .columns = HD_ALL_COLUMNS};
    struct person_scan scan = {m, place};

    return m->rows >= BATCH_ROWS
               ? 0
               : hd_rows_scan(m->rekey->store, query, on_person_row, &scan, m->fault);
}

static int move_agents(struct room_mover *m)
{
    struct hd_room_agent *agents = NULL;
    size_t count = 0, moved = 0;
    int err = hd_room_agents_read(&m->room, &m->arena, &agents, &count, m->fault);

    for (size_t i = 0; !err && i < count; i++)
        moved += follow_principal(m, &agents[i].actor);
    if (err || moved == 0)
        return err;
    m->rows++;
    return hd_room_agents_write(&m->room, agents, count, &m->arena);
}

static int move_editors(struct room_mover *m)
{
    struct hd_cascade_rec *cascades = NULL;
    size_t count = 0;
    int err = hd_cascades_read(m->rekey->store, m->principal, m->thread_id, 0, &m->arena, &cascades,
                               &count, m->fault);

    for (size_t i = 0; !err && i < count; i++) {
        if (!follow_principal(m, &cascades[i].actor))
            continue;
        err = hd_cascade_put(&m->batch, &cascades[i]);
        m->rows++;
    }
    return err;
}

/* ---- a room ----------------------------------------------------------- */

static int plan_room(struct room_mover *m)
{
    static const struct person_place places[] = {{HD_ROOM_MESSAGES, HD_ROOM_MESSAGES_SENDER},
                                                 {HD_ROOM_READS, HD_ROOM_READS_READER}};
    int err = move_agents(m);

    if (!err)
        err = move_editors(m);
    for (size_t i = 0; !err && i < HD_COUNT(places); i++)
        err = move_people(m, &places[i]);
    if (!err && m->rows > 0)
        err = hd_room_put(&m->batch, &m->room);
    return err;
}

/* One batch of the room's rows: m->rows is 0 when there are none left. */
static int move_room_once(void *arg, struct heddle_error *fault)
{
    struct room_mover *m = arg;
    struct hd_batch view;
    struct hd_slice lane;
    int err;

    m->rows = 0;
    hd_batch_reset(&m->batch);
    hd_arena_reset(&m->arena);
    err = hd_room_read(m->rekey->store, m->principal, m->thread_id, &m->arena, &m->room, fault);
    if (err)
        return err == HD_ENOTFOUND ? 0 : err;
    err = hd_thread_lane(&m->arena, m->principal, m->thread_id, &lane);
    if (!err)
        err = plan_room(m);
    view = hd_batch_view(&m->batch);
    if (!err && m->rows > 0)
        err = hd_rows_apply(m->rekey->store, lane, &view, NULL, fault);
    return err;
}

static int on_room_row(void *arg, size_t which, const struct hd_cell *cells)
{
    struct room_mover *m = arg;
    int err = 0;

    (void)which;
    m->principal = cells[HD_ROOM_PRINCIPAL].bytes;
    m->thread_id = cells[HD_ROOM_THREAD].bytes;
    do {
        err = hd_rows_change(m->rekey->store, move_room_once, m, m->fault);
        m->rekey->rows += err ? 0 : m->rows;
    } while (!err && m->rows > 0);
    return err;
}

int hd_mover_follow_people(struct hd_rekey *rekey, struct heddle_error *fault)
{
    struct hd_query query = {.table = HD_ROOM, .index = HD_PRIMARY};
    struct room_mover m = {.rekey = rekey, .fault = fault};
    int err;

    hd_arena_init(&m.names, MAX_ROOM);
    hd_map_init(&m.moved, MAX_PRINCIPALS);
    hd_arena_init(&m.arena, MAX_ROOM);
    hd_batch_init(&m.batch);
    err = hd_principals_scan(rekey->store, HD_S(""), on_any_principal, &m, fault);
    if (!err && m.moved.count > 0)
        err = hd_rows_scan(rekey->store, query, on_room_row, &m, fault);
    hd_batch_fini(&m.batch);
    hd_arena_fini(&m.arena);
    hd_map_fini(&m.moved);
    hd_arena_fini(&m.names);
    return err;
}
