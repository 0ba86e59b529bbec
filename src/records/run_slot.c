#include "records/run_slot.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/uuid.h"
#include "records/record.h"
#include "store/rows.h"

#define MAX_SLOTS 100000
#define MAX_ARENA ((size_t)64 << 20)

/* ---- finding ---------------------------------------------------------- */

struct taken_slot {
    struct hd_run_slot slot;
    struct hd_slice principal, thread_id, run_id;
    bool is_active;
};

struct slots {
    struct hd_arena arena;
    int64_t most;
    struct taken_slot *list; /* by number */
    size_t count;
};

static int on_slot(void *arg, size_t which, const struct hd_cell *cells)
{
    struct slots *slots = arg;
    struct taken_slot *slot = &slots->list[slots->count];
    int err;

    (void)which;
    if ((int64_t)slots->count == slots->most)
        return 1;
    slot->slot.number = cells[HD_RUN_SLOTS_SLOT].number;
    slot->slot.token = cells[HD_RUN_SLOTS_TOKEN].number;
    err = hd_arena_copy(&slots->arena, cells[HD_RUN_SLOTS_PRINCIPAL].bytes, &slot->principal);
    if (!err)
        err = hd_arena_copy(&slots->arena, cells[HD_RUN_SLOTS_THREAD].bytes, &slot->thread_id);
    if (!err)
        err = hd_arena_copy(&slots->arena, cells[HD_RUN_SLOTS_RUN].bytes, &slot->run_id);
    slots->count += !err;
    return err;
}

static int read_slots(struct heddle *store, struct hd_slice actor, struct slots *slots,
                      struct heddle_error *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(actor), high = hd_cell_int(slots->most + 1);
    const struct hd_query query = {.table = HD_RUN_SLOTS,
                                   .index = HD_PRIMARY,
                                   .prefix = &prefix,
                                   .prefix_count = 1,
                                   .high = &high,
                                   .columns = HD_ALL_COLUMNS};

    slots->list = hd_arena_calloc(&slots->arena, (size_t)slots->most, sizeof(*slots->list));
    return slots->list ? hd_rows_read(store, &query, 1, on_slot, slots, fault) : HD_ENOMEM;
}

static uint64_t choose_below(uint64_t limit)
{
    uint64_t number;

    hd_random(&number, sizeof(number));
    return number % limit;
}

/* Keeps the list in the order of the numbers. There is room: not all slots were taken. */
static void mark_taken(struct slots *slots, int64_t number)
{
    size_t i = slots->count++;

    for (; i > 0 && slots->list[i - 1].slot.number > number; i--)
        slots->list[i] = slots->list[i - 1];
    slots->list[i] = (struct taken_slot){.slot = {.number = number}};
}

/* Takes one of the free numbers at random: simultaneous admissions rarely choose the same. */
static int64_t choose_free(struct slots *slots)
{
    uint64_t skip = choose_below((uint64_t)slots->most - slots->count);
    int64_t number = 1 + (int64_t)skip;

    for (size_t i = 0; i < slots->count && slots->list[i].slot.number <= number; i++)
        number++;
    mark_taken(slots, number);
    return number;
}

static int on_run_of_slot(void *arg, size_t which, const struct hd_cell *cells)
{
    struct taken_slot *slots = arg;

    slots[which].is_active = cells[HD_RUNS_DUE].kind != HD_CELL_NULL;
    return 0;
}

/* Finds slots whose run is not in flight, among some of them. */
static int find_left(struct heddle *store, struct slots *slots, struct hd_run_slot *out,
                     size_t wanted, struct heddle_error *fault)
{
    struct hd_cell keys[HD_RUN_SLOT_CHECKS][3];
    struct hd_query queries[HD_RUN_SLOT_CHECKS];
    size_t count = slots->count < HD_RUN_SLOT_CHECKS ? slots->count : HD_RUN_SLOT_CHECKS;
    struct taken_slot *first = slots->list + choose_below(slots->count - count + 1);
    int err;

    for (size_t i = 0; i < count; i++) {
        keys[i][0] = hd_cell_bytes(first[i].principal);
        keys[i][1] = hd_cell_bytes(first[i].thread_id);
        keys[i][2] = hd_cell_bytes(first[i].run_id);
        queries[i] = (struct hd_query){.table = HD_RUNS,
                                       .index = HD_PRIMARY,
                                       .prefix = keys[i],
                                       .prefix_count = HD_COUNT(keys[i]),
                                       .columns = 1u << HD_RUNS_DUE};
    }
    err = hd_rows_read(store, queries, count, on_run_of_slot, first, fault);
    for (size_t i = 0; !err && wanted > 0 && i < count; i++) {
        if (!first[i].is_active) {
            *out++ = first[i].slot;
            wanted--;
        }
    }
    return !err && wanted > 0 ? HD_ELIMIT : err;
}

int hd_run_slots_find(struct heddle *store, struct hd_slice actor, int64_t most,
                      struct hd_run_slot *out, size_t count, struct heddle_error *fault)
{
    struct slots slots = {.most = most < MAX_SLOTS ? most : MAX_SLOTS};
    size_t unused, left = 0; /* slots without a run; those whose run is gone */
    int err;

    hd_arena_init(&slots.arena, MAX_ARENA);
    err = read_slots(store, actor, &slots, fault);
    unused = (size_t)slots.most - slots.count;
    if (count > unused)
        left = count - unused;
    if (!err && left > slots.count)
        err = HD_ELIMIT;
    if (!err && left > 0)
        err = find_left(store, &slots, out, left, fault);
    for (size_t i = left; !err && i < count; i++)
        out[i] = (struct hd_run_slot){.number = choose_free(&slots)};
    hd_arena_fini(&slots.arena);
    return err;
}

/* ---- taking and freeing ----------------------------------------------- */

int hd_run_slot_take(struct hd_batch_builder *batch, const struct hd_run_slot *slot,
                     struct hd_run_rec *run)
{
    const struct hd_cell key[] = {hd_cell_bytes(run->actor), hd_cell_int(slot->number)};
    struct hd_cell row[] = {
        [HD_RUN_SLOTS_ACTOR] = key[0],
        [HD_RUN_SLOTS_SLOT] = key[1],
        [HD_RUN_SLOTS_TOKEN] = hd_cell_null(),
        [HD_RUN_SLOTS_PRINCIPAL] = hd_cell_bytes(run->principal),
        [HD_RUN_SLOTS_THREAD] = hd_cell_bytes(run->thread_id),
        [HD_RUN_SLOTS_RUN] = hd_cell_bytes(run->run_id),
    };
    int64_t token;
    int err = 0;

    do
        hd_random(&token, sizeof(token));
    while (token == 0);
    row[HD_RUN_SLOTS_TOKEN] = hd_cell_int(token);
    if (slot->token)
        err = hd_batch_expect(batch, HD_RUN_SLOTS, key, HD_RUN_SLOTS_TOKEN, slot->token);
    if (!err)
        err = hd_batch_row(batch, slot->token ? HD_OP_PUT : HD_OP_ADD, HD_RUN_SLOTS, row);
    if (!err)
        run->slot = slot->number;
    return err;
}

int hd_run_slot_free(struct hd_batch_builder *batch, const struct hd_run_rec *run)
{
    const struct hd_cell key[] = {hd_cell_bytes(run->actor), hd_cell_int(run->slot)};

    return run->slot ? hd_batch_delete(batch, HD_RUN_SLOTS, key, HD_COUNT(key)) : 0;
}
