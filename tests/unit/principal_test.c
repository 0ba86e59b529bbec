#include "auth/principal.h"

#include <string.h>

#include "auth/base64url.h"
#include "tests/unit/auth_vectors.h"
#include "tests/unit/check.h"

static void principals_are_those_of_another_program(void **state)
{
    struct hd_principal_key keyed = {.id = HD_S("2026")}, plain = {.id = HD_S("")};

    (void)state;
    for (size_t i = 0; i < HD_PRINCIPAL_KEY_LEN; i++)
        keyed.bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < HD_COUNT(vector_principals); i++) {
        char out[HD_PRINCIPAL_SIZE];

        assert_err(hd_auth_principal_derive(vector_principals[i].is_keyed ? &keyed : &plain,
                                            vector_principals[i].is_organisation
                                                ? HD_PRINCIPAL_ORGANISATION
                                                : HD_PRINCIPAL_PERSON,
                                            hd_slice_cstr(vector_principals[i].alias),
                                            hd_slice_cstr(vector_principals[i].subject), out),
                   0);
        assert_string_equal(out, vector_principals[i].principal);
        assert_int_equal(strlen(out), HD_PRINCIPAL_LEN);
    }
}

static void no_two_of_the_vectors_are_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(vector_principals); i++) {
        for (size_t n = 0; n < i; n++)
            assert_string_not_equal(vector_principals[i].principal, vector_principals[n].principal);
    }
}

static void claims_are_joined_behind_their_lengths(void **state)
{
    struct hd_slice claims[] = {HD_S("tenant"), HD_S("12:34")}, out;
    struct hd_arena arena;

    (void)state;
    hd_arena_init(&arena, 4096);
    assert_err(hd_subject_join(&arena, claims, 2, &out), 0);
    assert_slice(out, HD_S("6:tenant5:12:34"));
    assert_err(hd_subject_join(&arena, claims, 1, &out), 0);
    assert_slice(out, HD_S("tenant"));
    assert_err(hd_subject_join(&arena, claims, 0, &out), HD_EINVAL);
    hd_arena_fini(&arena);
}

static int derive_one(void *arg)
{
    struct hd_principal_key plain = {.id = HD_S("")};
    char out[HD_PRINCIPAL_SIZE];

    (void)arg;
    return hd_auth_principal_derive(&plain, HD_PRINCIPAL_PERSON, HD_S("a"), HD_S("b"), out);
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    assert_true(check_every_allocation(derive_one, NULL) > 0);
}

static void base64url_has_one_form(void **state)
{
    static const struct {
        const char *text;
        const char *bytes;
        size_t len;
    } good[] = {{"", "", 0},
                {"AA", "\0", 1},
                {"_w", "\xff", 1},
                {"-_8", "\xfb\xff", 2},
                {"aGVkZGxl", "heddle", 6},
                {"aGVkZGxlcw", "heddles", 7}};
    static const char *const bad[] = {"A",   "AB", "AAA=",  "AA==", "A A", "a+b/",
                                      "AAB", "_x", "AAAAA", "\n",   "AA\n"};
    unsigned char out[16];
    char back[16];
    size_t len;

    (void)state;
    for (size_t i = 0; i < HD_COUNT(good); i++) {
        assert_err(hd_base64url_decode(hd_slice_cstr(good[i].text), out, &len), 0);
        assert_slice(hd_slice(out, len), hd_slice(good[i].bytes, good[i].len));
        hd_base64url_encode(out, len, back);
        assert_slice(hd_slice(back, HD_BASE64URL_LEN(len)), hd_slice_cstr(good[i].text));
    }
    for (size_t i = 0; i < HD_COUNT(bad); i++)
        assert_err(hd_base64url_decode(hd_slice_cstr(bad[i]), out, &len), HD_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(principals_are_those_of_another_program),
        cmocka_unit_test(no_two_of_the_vectors_are_the_same),
        cmocka_unit_test(claims_are_joined_behind_their_lengths),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(base64url_has_one_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
