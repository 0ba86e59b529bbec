#include "records/principals.h"

#include "base/clock.h"
#include "records/record_internal.h"
#include "store/rows.h"

#define MAX_KEYS 16
#define ATTEMPTS 8

/* ---- reading ---------------------------------------------------------- */

/* Borrows from the cells, but for moved_to. */
static int decode_principal(const struct hd_cell *cells, struct hd_arena *arena,
                            struct hd_principal_rec *out, struct hd_fault *fault)
{
    struct hd_slice kind, moved;
    const struct hd_member members[] = {{"organisation", &kind}, {"moved_to", &moved}};
    int err = hd_record_split(cells[HD_PRINCIPALS_BODY].bytes, members, HD_COUNT(members));

    *out = (struct hd_principal_rec){
        .id = cells[HD_PRINCIPALS_ID].bytes,
        .rev = cells[HD_PRINCIPALS_REV].number,
        .key_id = cells[HD_PRINCIPALS_KEY].bytes,
        .issuer = cells[HD_PRINCIPALS_ISSUER].bytes,
        .subject = cells[HD_PRINCIPALS_SUBJECT].bytes,
        .state = (enum hd_principal_state)cells[HD_PRINCIPALS_STATE].number,
        .created_at = cells[HD_PRINCIPALS_CREATED].number,
    };
    if (!err)
        err = hd_record_text(moved, arena, &out->moved_to);
    if (kind.len > 0)
        out->kind = HD_PRINCIPAL_ORGANISATION;
    return err == HD_ECORRUPT ? hd_record_damaged(HD_PRINCIPALS, out->id, fault) : err;
}

int hd_principal_read(struct heddle *store, struct hd_slice id, struct hd_arena *arena,
                      struct hd_principal_rec *out, struct hd_fault *fault)
{
    const struct hd_cell key = hd_cell_bytes(id);
    struct hd_cell cells[HD_MAX_COLUMNS];
    int err = hd_record_get(store, HD_PRINCIPALS, &key, 1, arena, cells, fault);

    return err ? err : decode_principal(cells, arena, out, fault);
}

struct principal_scan {
    hd_principal_fn fn;
    void *arg;
};

static int on_principal_row(void *arg, const struct hd_cell *cells, struct hd_arena *arena,
                            struct hd_fault *fault)
{
    struct hd_principal_rec principal;
    const struct principal_scan *scan = arg;
    int err = decode_principal(cells, arena, &principal, fault);

    return err ? err : scan->fn(scan->arg, &principal);
}

int hd_principals_scan(struct heddle *store, struct hd_slice after, hd_principal_fn fn, void *arg,
                       struct hd_fault *fault)
{
    const struct hd_cell behind = hd_cell_bytes(after);
    struct hd_query query = {.table = HD_PRINCIPALS,
                             .index = HD_PRIMARY,
                             .after = &behind,
                             .after_count = after.len > 0,
                             .columns = HD_ALL_COLUMNS};
    struct principal_scan scan = {.fn = fn, .arg = arg};

    return hd_record_scan(store, query, on_principal_row, &scan, fault);
}

/* ---- writing ---------------------------------------------------------- */

struct hd_slice hd_principal_lane(void)
{
    return HD_S(":principals");
}

static int write_principal(struct hd_batch_builder *batch, struct hd_principal_rec *principal,
                           enum hd_op_kind kind)
{
    struct hd_record_writer writer;
    struct hd_slice body;
    int err;

    hd_record_begin(&writer);
    if (principal->kind == HD_PRINCIPAL_ORGANISATION)
        hd_record_put_json(&writer, "organisation", HD_S("true"));
    hd_record_put_text(&writer, "moved_to", principal->moved_to);
    err = hd_record_end(&writer, &batch->arena, &body);
    if (err)
        return err;

    const struct hd_cell row[] = {
        [HD_PRINCIPALS_ID] = hd_cell_bytes(principal->id),
        [HD_PRINCIPALS_REV] = hd_cell_int(principal->rev + 1),
        [HD_PRINCIPALS_KEY] = hd_cell_bytes(principal->key_id),
        [HD_PRINCIPALS_ISSUER] = hd_cell_bytes(principal->issuer),
        [HD_PRINCIPALS_SUBJECT] = hd_cell_bytes(principal->subject),
        [HD_PRINCIPALS_STATE] = hd_cell_int(principal->state),
        [HD_PRINCIPALS_CREATED] = hd_cell_int(principal->created_at),
        [HD_PRINCIPALS_BODY] = hd_cell_bytes(body),
    };

    principal->rev++;
    return hd_batch_row(batch, kind, HD_PRINCIPALS, row);
}

int hd_principal_add(struct hd_batch_builder *batch, struct hd_principal_rec *principal)
{
    principal->rev = 0;
    return write_principal(batch, principal, HD_OP_PUT_NEW);
}

int hd_principal_put(struct hd_batch_builder *batch, struct hd_principal_rec *principal)
{
    const struct hd_cell key = hd_cell_bytes(principal->id);
    int err = hd_batch_expect(batch, HD_PRINCIPALS, &key, HD_PRINCIPALS_REV, principal->rev);

    return err ? err : write_principal(batch, principal, HD_OP_PUT);
}

int hd_principal_delete(struct hd_batch_builder *batch, struct hd_slice id)
{
    const struct hd_cell key = hd_cell_bytes(id);

    return hd_batch_delete(batch, HD_PRINCIPALS, &key, 1);
}

/* ---- settling --------------------------------------------------------- */

/* The user's principal under each key, and its stored row. */
struct candidates {
    char ids[MAX_KEYS][HD_PRINCIPAL_SIZE];
    bool is_stored[MAX_KEYS];
    enum hd_principal_state states[MAX_KEYS];
    size_t count;
};

static int derive_all(const struct hd_auth *auth, enum hd_principal_kind kind,
                      struct hd_slice alias, struct hd_slice subject, struct candidates *all)
{
    int err = 0;

    all->count = hd_auth_key_count(auth);
    if (all->count > MAX_KEYS)
        return HD_EINVAL;
    for (size_t i = 0; !err && i < all->count; i++)
        err = hd_auth_principal_derive(hd_auth_key(auth, i), kind, alias, subject, all->ids[i]);
    return err;
}

static int on_candidate(void *arg, size_t which, const struct hd_cell *cells)
{
    struct candidates *all = arg;

    all->is_stored[which] = true;
    all->states[which] = (enum hd_principal_state)cells[HD_PRINCIPALS_STATE].number;
    return 0;
}

static int read_candidates(struct heddle *store, struct candidates *all, struct hd_fault *fault)
{
    struct hd_query queries[MAX_KEYS];
    struct hd_cell keys[MAX_KEYS];

    for (size_t i = 0; i < all->count; i++) {
        keys[i] = hd_cell_bytes(hd_slice_cstr(all->ids[i]));
        queries[i] = (struct hd_query){.table = HD_PRINCIPALS,
                                       .index = HD_PRIMARY,
                                       .prefix = &keys[i],
                                       .prefix_count = 1,
                                       .columns = 1u << HD_PRINCIPALS_STATE};
    }
    return hd_rows_read(store, queries, all->count, on_candidate, all, fault);
}

/* The one that is in use, or the newest; HD_EBUSY: it is on its way. */
static int choose_candidate(const struct candidates *all, size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (all->is_stored[i] && all->states[i] == HD_PRINCIPAL_MOVING)
            return HD_EBUSY;
        if (all->is_stored[i] && all->states[i] == HD_PRINCIPAL_HERE) {
            *out = i;
            return 0;
        }
    }
    return 0;
}

static int add_principal(struct heddle *store, struct hd_principal_rec *principal,
                         struct hd_fault *fault)
{
    struct hd_batch_builder builder;
    struct hd_batch batch;
    int err;

    hd_batch_init(&builder);
    err = hd_principal_add(&builder, principal);
    batch = hd_batch_view(&builder);
    if (!err)
        err = hd_rows_apply(store, hd_principal_lane(), &batch, NULL, fault);
    hd_batch_fini(&builder);
    return err;
}

/*
 * The row of a moved principal stays: it is used again when an operator makes an older key the
 * newest.
 */
static int bring_back(struct heddle *store, struct hd_slice id, struct hd_fault *fault)
{
    struct hd_principal_rec principal;
    struct hd_batch_builder builder;
    struct hd_arena arena;
    struct hd_batch batch;
    int err;

    hd_arena_init(&arena, 65536);
    hd_batch_init(&builder);
    err = hd_principal_read(store, id, &arena, &principal, fault);
    if (!err) {
        principal.state = HD_PRINCIPAL_HERE;
        principal.moved_to = HD_S("");
        err = hd_principal_put(&builder, &principal);
    }
    batch = hd_batch_view(&builder);
    if (!err)
        err = hd_rows_apply(store, hd_principal_lane(), &batch, NULL, fault);
    hd_batch_fini(&builder);
    hd_arena_fini(&arena);
    return err;
}

int hd_principal_settle(struct heddle *store, const struct hd_auth *auth,
                        enum hd_principal_kind kind, struct hd_slice alias, struct hd_slice subject,
                        char out[HD_PRINCIPAL_SIZE], struct hd_fault *fault)
{
    struct hd_principal_rec principal = {
        .kind = kind, .issuer = alias, .subject = subject, .created_at = hd_clock_now_us()};
    int err = HD_ECONFLICT;
    size_t chosen = 0;

    for (int attempt = 0; err == HD_ECONFLICT && attempt < ATTEMPTS; attempt++) {
        struct candidates all = {0};

        err = derive_all(auth, kind, alias, subject, &all);
        if (!err)
            err = read_candidates(store, &all, fault);
        if (!err)
            err = choose_candidate(&all, &chosen);
        if (err)
            return err;
        memcpy(out, all.ids[chosen], HD_PRINCIPAL_SIZE);
        principal.id = hd_slice_cstr(out);
        principal.key_id = hd_auth_key(auth, chosen)->id;
        if (!all.is_stored[chosen])
            err = add_principal(store, &principal, fault);
        else if (all.states[chosen] != HD_PRINCIPAL_HERE)
            err = bring_back(store, principal.id, fault);
    }
    return err;
}
