/* The signed header of forwarded requests: everything comes back, and any change is refused. */
#include "auth/forwarded.h"

#include <string.h>

#include "tests/unit/check.h"
#include "tests/unit/forwarded_sign.h"

#define A "00000000-0000-4000-8000-00000000000a"
#define B "00000000-0000-4000-8000-00000000000b"

static struct hd_forwarded_key key, other_key;
static struct hd_arena arena;
static struct hd_forwarded forwarded;
static struct hd_buf header;
static const struct hd_forwarded_target target = {.method = HD_S_INIT("POST"),
                                                  .path = HD_S_INIT("/threads/t/runs"),
                                                  .query = HD_S_INIT("a=1&b=%20")};

static struct hd_identity *make_identity(const char *subject)
{
    struct hd_identity *identity = hd_identity_new();

    assert_non_null(identity);
    identity->principal = HD_S("1234567890123456789012");
    identity->issuer = HD_S("hall");
    identity->subject = hd_slice_cstr(subject);
    identity->organisations[0] = HD_S("org-principal");
    identity->organisation_names[0] = HD_S("Ørg \"one\"");
    identity->organisations[1] = HD_S("other");
    identity->organisation_names[1] = HD_S("");
    identity->organisation_count = 2;
    identity->is_admin = true;
    identity->key_id = HD_S("key-id");
    identity->expires_at = 1234567890123456;
    identity->fingerprint = hd_slice("\0\1\2\xff\xfe", 5);
    identity->user = HD_S("{\"identity\":\"é\\u0000\",\"n\":1.0}");
    return identity;
}

static int setup(void **state)
{
    (void)state;
    hd_arena_init(&arena, (size_t)1 << 22);
    assert_err(hd_forwarded_key_derive(HD_S("0123456789012345678901234567890123"), &key), 0);
    assert_err(hd_forwarded_key_derive(HD_S("0123456789012345678901234567890124"), &other_key), 0);
    forwarded = (struct hd_forwarded){.source = HD_S(A),
                                      .target = HD_S(B),
                                      .identity = make_identity("ann"),
                                      .by = make_identity("root"),
                                      .principal = HD_S("owner-of-the-thread"),
                                      .role = HD_ROLE_EDITOR};
    assert_err(hd_sha256(HD_S("{}"), forwarded.body), 0);
    hd_buf_init(&header, SIZE_MAX);
    assert_err(hd_forwarded_write(&key, &forwarded, &target, &header), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hd_forwarded_fini(&forwarded);
    hd_buf_fini(&header);
    hd_arena_fini(&arena);
    return 0;
}

static int read_as(const struct hd_forwarded_key *with, const char *self,
                   const struct hd_forwarded_target *what, struct hd_forwarded *out)
{
    return hd_forwarded_read(with, hd_slice_cstr(self), hd_buf_slice(&header), what, &arena, out);
}

static void assert_refused(struct hd_slice text)
{
    struct hd_forwarded out;

    assert_err(hd_forwarded_read(&key, HD_S(B), text, &target, &arena, &out), HD_EACCESS);
    assert_null(out.identity);
    assert_null(out.by);
}

static void assert_same_identity(const struct hd_identity *a, const struct hd_identity *b)
{
    assert_slice(a->principal, b->principal);
    assert_slice(a->issuer, b->issuer);
    assert_slice(a->subject, b->subject);
    assert_int_equal(a->organisation_count, b->organisation_count);
    for (size_t i = 0; i < a->organisation_count; i++) {
        assert_slice(a->organisations[i], b->organisations[i]);
        assert_slice(a->organisation_names[i], b->organisation_names[i]);
    }
    assert_int_equal(a->is_admin, b->is_admin);
    assert_slice(a->key_id, b->key_id);
    assert_int_equal(a->expires_at, b->expires_at);
    assert_slice(a->fingerprint, b->fingerprint);
    assert_slice(a->user, b->user);
}

static void everything_comes_back(void **state)
{
    struct hd_forwarded out;

    (void)state;
    assert_err(read_as(&key, B, &target, &out), 0);
    assert_slice(out.source, HD_S(A));
    assert_slice(out.target, HD_S(B));
    assert_slice(out.principal, forwarded.principal);
    assert_int_equal(out.role, HD_ROLE_EDITOR);
    assert_memory_equal(out.body, forwarded.body, sizeof(out.body));
    assert_same_identity(out.identity, forwarded.identity);
    assert_same_identity(out.by, forwarded.by);
    hd_forwarded_fini(&out);
}

static void servers_without_users_send_no_identity(void **state)
{
    struct hd_forwarded out, empty = forwarded;

    (void)state;
    empty.identity = empty.by = NULL;
    empty.principal = HD_S("");
    hd_buf_reset(&header);
    assert_err(hd_forwarded_write(&key, &empty, &target, &header), 0);
    assert_err(read_as(&key, B, &target, &out), 0);
    assert_null(out.identity);
    assert_int_equal(out.principal.len, 0);
    hd_forwarded_fini(&out);
}

static void another_request_is_refused(void **state)
{
    const struct hd_forwarded_target others[] = {
        {HD_S_INIT("GET"), target.path, target.query},
        {target.method, HD_S_INIT("/threads/u/runs"), target.query},
        {target.method, target.path, HD_S_INIT("a=1&b=%21")},
        {target.method, target.path, HD_S_INIT("")},
        {target.method, HD_S_INIT("/threads/t/runsa=1&b=%20"), HD_S_INIT("")},
        {HD_S_INIT("POST/"), HD_S_INIT("threads/t/runs"), target.query},
    };
    struct hd_forwarded out;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(others); i++)
        assert_err(read_as(&key, B, &others[i], &out), HD_EACCESS);
}

static void another_key_is_refused(void **state)
{
    struct hd_forwarded out;

    (void)state;
    assert_err(read_as(&other_key, B, &target, &out), HD_EACCESS);
}

static void another_server_is_told_apart(void **state)
{
    struct hd_forwarded out;

    (void)state;
    assert_err(read_as(&key, A, &target, &out), HD_ETAKEN);
    assert_null(out.identity);
}

static void each_changed_character_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < header.len; i++) {
        char was = header.ptr[i];

        header.ptr[i] = was == 'A' ? 'B' : 'A';
        assert_refused(hd_buf_slice(&header));
        header.ptr[i] = was;
    }
}

static void each_shorter_header_is_refused(void **state)
{
    (void)state;
    for (size_t len = 0; len < header.len; len++)
        assert_refused(hd_slice(header.ptr, len));
    assert_err(hd_buf_append_slice(&header, HD_S("A")), 0);
    assert_refused(hd_buf_slice(&header));
}

#define SERVERS "\"source\":\"" A "\",\"target\":\"" B "\","
#define HASH "\"body\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\""
#define PERSON                                                                                   \
    "\"identity\":{\"principal\":\"p\",\"issuer\":\"i\",\"subject\":\"s\",\"organisations\":[]," \
    "\"is_admin\":false,\"expires_at\":0}"

static int read_json(const char *json)
{
    struct hd_forwarded out;
    struct hd_buf text;
    int err;

    hd_buf_init(&text, SIZE_MAX);
    assert_err(sign_json(&key, hd_slice_cstr(json), &target, &text), 0);
    err = hd_forwarded_read(&key, HD_S(B), hd_buf_slice(&text), &target, &arena, &out);
    hd_forwarded_fini(&out);
    hd_buf_fini(&text);
    return err;
}

static void incomplete_json_is_refused_with_a_valid_code(void **state)
{
    static const char *const refused[] = {
        "",
        "[]",
        "{}",
        "{" SERVERS "\"role\":1}",
        "{" SERVERS "\"principal\":\"\"," HASH "}",
        "{" SERVERS "\"principal\":\"\",\"role\":0," HASH "}",
        "{" SERVERS "\"principal\":\"\",\"role\":4," HASH "}",
        "{" SERVERS "\"principal\":\"\",\"role\":\"1\"," HASH "}",
        "{" SERVERS "\"principal\":[],\"role\":1," HASH "}",
        "{" SERVERS "\"principal\":\"\",\"role\":1,\"body\":\"AAAA\"}",
        "{" SERVERS "\"principal\":\"\",\"role\":1,\"body\":\"*\"}",
        "{\"source\":\"x\",\"target\":\"" B "\",\"principal\":\"\",\"role\":1," HASH "}",
        "{" SERVERS "\"principal\":\"\",\"role\":1," HASH "," PERSON "}",
        "{" SERVERS "\"principal\":\"p\",\"role\":1," HASH ",\"identity\":{}}",
        "{" SERVERS "\"principal\":\"p\",\"role\":1," HASH ",\"identity\":null}",
        "{" SERVERS "\"principal\":\"\",\"role\":1," HASH ",\"by\":{}}",
        "{" SERVERS "\"principal\":\"p\",\"role\":1," HASH
        ",\"identity\":{\"principal\":\"\",\"organisations\":[],\"is_admin\":false,"
        "\"expires_at\":0}}",
        "{" SERVERS "\"principal\":\"p\",\"role\":1," HASH
        ",\"identity\":{\"principal\":\"p\",\"organisations\":[[\"a\"]],\"is_admin\":false,"
        "\"expires_at\":0}}",
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(refused); i++) {
        if (read_json(refused[i]) != HD_EACCESS)
            fail_msg("%s", refused[i]);
    }
    assert_err(read_json("{" SERVERS "\"principal\":\"\",\"role\":1," HASH "}"), 0);
    assert_err(read_json("{" SERVERS "\"principal\":\"p\",\"role\":3," HASH "," PERSON "}"), 0);
}

static void a_large_identity_is_not_written(void **state)
{
    static char user[HD_FORWARDED_MAX];
    struct hd_slice was = forwarded.identity->user;

    (void)state;
    memset(user, 'u', sizeof(user));
    forwarded.identity->user = hd_slice(user, sizeof(user));
    hd_buf_reset(&header);
    assert_err(hd_forwarded_write(&key, &forwarded, &target, &header), HD_ELIMIT);
    forwarded.identity->user = was;
}

static int write_and_read(void *arg)
{
    struct hd_forwarded out;
    struct hd_arena own;
    struct hd_buf text;
    int err;

    (void)arg;
    hd_arena_init(&own, (size_t)1 << 20);
    hd_buf_init(&text, SIZE_MAX);
    err = hd_forwarded_write(&key, &forwarded, &target, &text);
    if (!err) {
        err = hd_forwarded_read(&key, HD_S(B), hd_buf_slice(&text), &target, &own, &out);
        hd_forwarded_fini(&out);
    }
    hd_buf_fini(&text);
    hd_arena_fini(&own);
    return err;
}

static void it_fails_without_memory(void **state)
{
    (void)state;
    assert_true(check_every_allocation(write_and_read, NULL) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(servers_without_users_send_no_identity, setup, teardown),
        cmocka_unit_test_setup_teardown(another_request_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(another_key_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(another_server_is_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(each_changed_character_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(each_shorter_header_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(incomplete_json_is_refused_with_a_valid_code, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_large_identity_is_not_written, setup, teardown),
        cmocka_unit_test_setup_teardown(it_fails_without_memory, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
