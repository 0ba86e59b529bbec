#include "records/principals.h"

#include "base/clock.h"
#include "records/record_internal.h"
#include "store/rows.h"

#define MAX_KEYS 16
#define ATTEMPTS 8

/* ---- how it is stored ------------------------------------------------- */

#define REC struct hd_principal_rec

_Static_assert(HD_PRINCIPAL_ORGANISATION == 1, "true is the second word of the kinds");

static const struct hd_record_field principal_members[] = {
    {HD_RECORD_MEMBER("organisation", WORD, REC, kind), .names = hd_record_true},
    {HD_RECORD_MEMBER("moved_to", TEXT, REC, moved_to)},
};

static int call_principal_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_principal_fn *)fn)(arg, record);
}

static const struct hd_record_type principal_type = {
    .table = HD_PRINCIPALS,
    .size = sizeof(REC),
    .id = HD_PRINCIPALS_ID,
    .rev = HD_PRINCIPALS_REV,
    .columns =
        {
            [HD_PRINCIPALS_ID] = {HD_RECORD_COLUMN(TEXT, REC, id)},
            [HD_PRINCIPALS_REV] = {HD_RECORD_COLUMN(INT, REC, rev)},
            [HD_PRINCIPALS_KEY] = {HD_RECORD_COLUMN(TEXT, REC, key_id)},
            [HD_PRINCIPALS_ISSUER] = {HD_RECORD_COLUMN(TEXT, REC, issuer)},
            [HD_PRINCIPALS_SUBJECT] = {HD_RECORD_COLUMN(TEXT, REC, subject)},
            [HD_PRINCIPALS_STATE] = {HD_RECORD_COLUMN(INT, REC, state)},
            [HD_PRINCIPALS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_PRINCIPALS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(principal_members),
    .unknown = offsetof(REC, unknown),
    .call = call_principal_fn,
};

/* ---- reading ---------------------------------------------------------- */

int hd_principal_read(struct heddle *store, struct hd_slice id, struct hd_arena *arena,
                      struct hd_principal_rec *out, struct heddle_error *fault)
{
    const struct hd_cell key = hd_cell_bytes(id);

    return hd_record_read(store, &principal_type, &key, 1, arena, out, fault);
}

int hd_principals_scan(struct heddle *store, struct hd_slice after, hd_principal_fn fn, void *arg,
                       struct heddle_error *fault)
{
    const struct hd_cell last = hd_cell_bytes(after);
    const struct hd_query query = {
        .index = HD_PRIMARY, .after = &last, .after_count = after.len > 0};

    return hd_records_scan(store, &principal_type, query, &fn, arg, fault);
}

/* ---- writing ---------------------------------------------------------- */

struct hd_slice hd_principal_lane(void)
{
    return HD_S(":principals");
}

int hd_principal_add(struct hd_batch_builder *batch, struct hd_principal_rec *principal)
{
    principal->rev = 1;
    return hd_record_write(batch, &principal_type, principal, HD_OP_PUT_NEW);
}

int hd_principal_put(struct hd_batch_builder *batch, struct hd_principal_rec *principal)
{
    return hd_record_put(batch, &principal_type, principal);
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

static int read_candidates(struct heddle *store, struct candidates *all, struct heddle_error *fault)
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

/* The one in use, or the newest; HD_EBUSY: one of them is being moved. */
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
                         struct heddle_error *fault)
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
static int bring_back(struct heddle *store, struct hd_slice id, struct heddle_error *fault)
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
                        char out[HD_PRINCIPAL_SIZE], struct heddle_error *fault)
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
