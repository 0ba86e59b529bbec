/* Rows of principals and API keys: which name a principal has at which time. */
#include "records/principals.h"

#include <heddle.h>
#include <stdio.h>

#include "records/api_keys.h"
#include "store/rows.h"
#include "tests/unit/check.h"

#define MAX_ARENA ((size_t)1 << 20)
#define ALIAS HD_S("main")
#define ALICE HD_S("alice")

struct world {
    struct heddle *store;
    struct hd_json config;
    struct hd_auth *auth;
    struct hd_arena arena;
};

static int64_t now_us(void *ctx)
{
    (void)ctx;
    return 1;
}

/* The key is derived from its name. */
static int secret(void *ctx, bool is_file, const char *name, struct hd_buf *out,
                  struct heddle_error *fault)
{
    (void)ctx;
    (void)is_file;
    (void)fault;
    return hd_buf_printf(out, "%.1s%.63s", name,
                         "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
}

static void use_keys(struct world *w, const char *config)
{
    const struct hd_auth_host host = {.now_us = now_us, .secret = secret};

    hd_auth_destroy(w->auth);
    hd_json_fini(&w->config);
    w->auth = NULL;
    assert_err(hd_json_parse(&w->config, hd_slice_cstr(config), NULL), 0);
    assert_err(hd_auth_create(hd_json_root(&w->config), &host, &w->auth, NULL), 0);
}

#define FIRST "{\"key\": {\"id\": \"1\", \"env\": \"a\"}}"
#define SECOND \
    "{\"key\": {\"id\": \"2\", \"env\": \"b\"}, \"old_keys\": [{\"id\": \"1\", \"env\": \"a\"}]}"
#define BACK \
    "{\"key\": {\"id\": \"1\", \"env\": \"a\"}, \"old_keys\": [{\"id\": \"2\", \"env\": \"b\"}]}"

static int setup(void **state)
{
    struct world *w = hd_calloc(1, sizeof(*w));
    struct heddle_error error = {0};

    assert_non_null(w);
    assert_err(heddle_open(&w->store, "memory:", &error), 0);
    hd_arena_init(&w->arena, MAX_ARENA);
    use_keys(w, FIRST);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hd_auth_destroy(w->auth);
    hd_json_fini(&w->config);
    hd_arena_fini(&w->arena);
    heddle_close(w->store);
    hd_free(w);
    return 0;
}

static int settle(struct world *w, char out[HD_PRINCIPAL_SIZE])
{
    struct heddle_error fault = {0};

    return hd_principal_settle(w->store, w->auth, HD_PRINCIPAL_PERSON, ALIAS, ALICE, out, &fault);
}

static struct hd_principal_rec read_row(struct world *w, const char *id)
{
    struct hd_principal_rec row = {.rev = 0};
    struct heddle_error fault = {0};

    assert_err(hd_principal_read(w->store, hd_slice_cstr(id), &w->arena, &row, &fault), 0);
    return row;
}

static void put_state(struct world *w, const char *id, enum hd_principal_state state,
                      const char *moved_to)
{
    struct hd_principal_rec row = read_row(w, id);
    struct hd_batch_builder builder;
    struct heddle_error fault = {0};
    struct hd_batch batch;

    row.state = state;
    row.moved_to = hd_slice_cstr(moved_to);
    hd_batch_init(&builder);
    assert_err(hd_principal_put(&builder, &row), 0);
    batch = hd_batch_view(&builder);
    assert_err(hd_rows_apply(w->store, hd_principal_lane(), &batch, NULL, &fault), 0);
    hd_batch_fini(&builder);
}

static void a_new_user_is_stored(void **state)
{
    char first[HD_PRINCIPAL_SIZE], again[HD_PRINCIPAL_SIZE];
    struct world *w = *state;
    struct hd_principal_rec row;

    assert_err(settle(w, first), 0);
    assert_err(settle(w, again), 0);
    assert_string_equal(first, again);
    row = read_row(w, first);
    assert_int_equal(row.rev, 1);
    assert_int_equal(row.kind, HD_PRINCIPAL_PERSON);
    assert_slice(row.key_id, HD_S("1"));
    assert_slice(row.issuer, ALIAS);
    assert_slice(row.subject, ALICE);
    assert_int_equal(row.state, HD_PRINCIPAL_HERE);
    assert_true(row.created_at > 0);
}

static void a_principal_comes_back_as_it_was(void **state)
{
    struct hd_principal_rec row = {.id = HD_S("p"),
                                   .kind = HD_PRINCIPAL_ORGANISATION,
                                   .key_id = HD_S("k"),
                                   .issuer = ALIAS,
                                   .subject = HD_S("acme"),
                                   .state = HD_PRINCIPAL_MOVED,
                                   .created_at = 5,
                                   .moved_to = HD_S("a \"q\"")};
    struct world *w = *state;
    struct hd_principal_rec back;
    struct hd_batch_builder builder;
    struct hd_batch batch;

    hd_batch_init(&builder);
    assert_err(hd_principal_add(&builder, &row), 0);
    batch = hd_batch_view(&builder);
    assert_err(hd_rows_apply(w->store, hd_principal_lane(), &batch, NULL, NULL), 0);
    hd_batch_fini(&builder);
    back = read_row(w, "p");
    assert_slice(back.id, row.id);
    assert_int_equal(back.rev, 1);
    assert_int_equal(back.kind, HD_PRINCIPAL_ORGANISATION);
    assert_slice(back.key_id, row.key_id);
    assert_slice(back.issuer, row.issuer);
    assert_slice(back.subject, row.subject);
    assert_int_equal(back.state, HD_PRINCIPAL_MOVED);
    assert_int_equal(back.created_at, 5);
    assert_slice(back.moved_to, row.moved_to);
}

static void organisations_and_people_differ(void **state)
{
    char person[HD_PRINCIPAL_SIZE], organisation[HD_PRINCIPAL_SIZE];
    struct world *w = *state;
    struct heddle_error fault = {0};

    assert_err(settle(w, person), 0);
    assert_err(hd_principal_settle(w->store, w->auth, HD_PRINCIPAL_ORGANISATION, ALIAS, ALICE,
                                   organisation, &fault),
               0);
    assert_string_not_equal(person, organisation);
    assert_int_equal(read_row(w, organisation).kind, HD_PRINCIPAL_ORGANISATION);
}

static void the_old_principal_is_used_until_it_moves(void **state)
{
    char old[HD_PRINCIPAL_SIZE], now[HD_PRINCIPAL_SIZE];
    struct world *w = *state;
    struct hd_principal_rec row;
    struct heddle_error fault = {0};

    assert_err(settle(w, old), 0);
    use_keys(w, SECOND);
    assert_err(settle(w, now), 0);
    assert_string_equal(now, old);
    put_state(w, old, HD_PRINCIPAL_MOVING, "");
    assert_err(settle(w, now), HD_EBUSY);
    put_state(w, old, HD_PRINCIPAL_MOVED, "there");
    assert_err(settle(w, now), 0);
    assert_string_not_equal(now, old);
    assert_slice(read_row(w, now).key_id, HD_S("2"));
    assert_slice(read_row(w, old).moved_to, HD_S("there"));
    assert_err(hd_principal_read(w->store, HD_S("nobody"), &w->arena, &row, &fault), HD_ENOTFOUND);
}

static void a_new_user_has_the_new_key(void **state)
{
    char now[HD_PRINCIPAL_SIZE];
    struct world *w = *state;

    use_keys(w, SECOND);
    assert_err(settle(w, now), 0);
    assert_slice(read_row(w, now).key_id, HD_S("2"));
}

/* The old key becomes the current one again: its row, marked as moved, is reused. */
static void one_can_go_back(void **state)
{
    char old[HD_PRINCIPAL_SIZE], now[HD_PRINCIPAL_SIZE];
    struct world *w = *state;

    assert_err(settle(w, old), 0);
    put_state(w, old, HD_PRINCIPAL_MOVED, "");
    use_keys(w, SECOND);
    assert_err(settle(w, now), 0);
    assert_string_not_equal(now, old);
    put_state(w, now, HD_PRINCIPAL_MOVED, old);
    use_keys(w, BACK);
    assert_err(settle(w, now), 0);
    assert_string_equal(now, old);
    assert_int_equal(read_row(w, old).state, HD_PRINCIPAL_HERE);
}

static int count_row(void *arg, const struct hd_principal_rec *principal)
{
    assert_int_equal(principal->id.len, HD_PRINCIPAL_LEN);
    ++*(int *)arg;
    return 0;
}

static void all_are_scanned_in_order(void **state)
{
    char id[HD_PRINCIPAL_SIZE], greatest[HD_PRINCIPAL_SIZE] = "";
    struct world *w = *state;
    struct heddle_error fault = {0};
    int count = 0;

    for (int i = 0; i < 300; i++) {
        char subject[16];

        (void)snprintf(subject, sizeof(subject), "%d", i);
        assert_err(hd_principal_settle(w->store, w->auth, HD_PRINCIPAL_PERSON, ALIAS,
                                       hd_slice_cstr(subject), id, &fault),
                   0);
        if (strcmp(id, greatest) > 0)
            memcpy(greatest, id, sizeof(id));
    }
    assert_err(hd_principals_scan(w->store, HD_S(""), count_row, &count, &fault), 0);
    assert_int_equal(count, 300);
    assert_err(hd_principals_scan(w->store, hd_slice_cstr(greatest), count_row, &count, &fault), 0);
    assert_int_equal(count, 300);
}

/* ---- API keys ------------------------------------------------------------ */

static int apply_key(struct world *w, struct hd_key_rec *key)
{
    struct hd_batch_builder builder;
    struct heddle_error fault = {0};
    struct hd_batch batch;
    int err;

    hd_batch_init(&builder);
    err = key->rev ? hd_key_put(&builder, key) : hd_key_add(&builder, key);
    batch = hd_batch_view(&builder);
    if (!err)
        err = hd_rows_apply(w->store, hd_key_lane(), &batch, NULL, &fault);
    hd_batch_fini(&builder);
    return err;
}

static void keys_come_back_as_they_were(void **state)
{
    struct hd_key_rec key = {.key = {.id = HD_S_INIT("id"),
                                     .hash = HD_S_INIT("hash"),
                                     .subject = HD_S_INIT("a \"quoted\" one"),
                                     .is_admin = true,
                                     .expires_at = 7},
                             .created_at = 5};
    struct hd_key_rec twice = key, read, stale;
    struct world *w = *state;
    struct heddle_error fault = {0};

    assert_err(apply_key(w, &key), 0);
    assert_err(apply_key(w, &twice), HD_ECONFLICT);
    assert_err(hd_key_read(w->store, HD_S("id"), &w->arena, &read, &fault), 0);
    assert_slice(read.key.id, HD_S("id"));
    assert_int_equal(read.rev, 1);
    assert_slice(read.key.hash, HD_S("hash"));
    assert_slice(read.key.subject, HD_S("a \"quoted\" one"));
    assert_true(read.key.is_admin);
    assert_int_equal(read.key.expires_at, 7);
    assert_int_equal(read.key.revoked_at, 0);
    assert_int_equal(read.created_at, 5);
    stale = read;
    read.key.revoked_at = 9;
    assert_err(apply_key(w, &read), 0);
    assert_err(apply_key(w, &stale), HD_ECONFLICT);
    assert_err(hd_key_read(w->store, HD_S("id"), &w->arena, &read, &fault), 0);
    assert_int_equal(read.key.revoked_at, 9);
    assert_err(hd_key_read(w->store, HD_S("other"), &w->arena, &read, &fault), HD_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_user_is_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(a_principal_comes_back_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(organisations_and_people_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(the_old_principal_is_used_until_it_moves, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_user_has_the_new_key, setup, teardown),
        cmocka_unit_test_setup_teardown(one_can_go_back, setup, teardown),
        cmocka_unit_test_setup_teardown(all_are_scanned_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_come_back_as_they_were, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
