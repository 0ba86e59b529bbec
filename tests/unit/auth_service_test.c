/* The gate: results that are known at once are returned, others come in a callback after the call
 * has returned. */
#include "gate/auth_service.h"

#include <string.h>

#include "auth/principal.h"
#include "gate/sign_in.h"
#include "tests/unit/app_world.h"

#define CONFIG                                                                                \
    "{\"auth\":{\"api_keys\":true,\"issuers\":[{\"alias\":\"main\","                          \
    "\"issuer\":\"https://issuer.test\",\"audience\":\"heddle\",\"algorithms\":[\"RS256\"],"  \
    "\"jwks_url\":\"https://127.0.0.1:1/keys\"}]},"                                           \
    "\"page\":{\"sign_in\":[{\"issuer\":\"main\",\"client_id\":\"heddle\",\"name\":\"Main\"," \
    "\"authorization_endpoint\":\"https://127.0.0.1:1/authorize\","                           \
    "\"token_endpoint\":\"https://127.0.0.1:1/token\"}]}}"
#define API_KEY "hdk_0123456789abcdef_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
#define VERIFIER "0123456789012345678901234567890123456789012"

struct seen {
    bool has_returned;
    int calls;
    int result; /* the verdict, the status or the error */
};

static int setup(void **state)
{
    char path[64], option[80];
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/auth-service-test-%d.json", (int)getpid());
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(CONFIG, file) >= 0);
    assert_int_equal(fclose(file), 0);
    snprintf(option, sizeof(option), "--config=%s", path);
    *state = world_open("memory:", option);
    (void)unlink(path);
    return 0;
}

static int teardown(void **state)
{
    world_close(*state);
    return 0;
}

static void note(struct seen *seen, int result)
{
    assert_true(seen->has_returned);
    seen->result = result;
    seen->calls++;
}

static void run_until_seen(struct app_world *w, const struct seen *seen)
{
    assert_int_equal(seen->calls, 0);
    while (seen->calls == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
}

/* ---- credentials ------------------------------------------------------ */

static void on_checked(void *ctx, const struct hd_auth_result *result)
{
    note(ctx, (int)result->verdict);
}

static int check(struct app_world *w, const char *authorization, const char *api_key,
                 struct seen *seen)
{
    struct hd_auth_result result;
    int err;

    *seen = (struct seen){.calls = 0};
    err = hd_auth_service_check(w->app.auth_service, hd_slice_cstr(authorization),
                                hd_slice_cstr(api_key), on_checked, seen, &result);
    seen->has_returned = true;
    if (err == HD_READY) {
        seen->result = (int)result.verdict;
        hd_identity_unref(result.identity);
    }
    return err;
}

static void a_check_never_calls_back_before_it_returns(void **state)
{
    struct app_world *w = *state;
    struct seen seen;

    assert_int_equal(check(w, "", "", &seen), HD_READY);
    assert_int_equal(seen.result, HD_AUTH_MISSING);
    assert_int_equal(check(w, "Basic abc", "", &seen), HD_READY);
    assert_int_equal(seen.result, HD_AUTH_REFUSED);
    assert_int_equal(check(w, "Bearer a.b.c", "", &seen), HD_READY);
    assert_int_equal(seen.result, HD_AUTH_REFUSED);
    assert_err(check(w, "", API_KEY, &seen), 0);
    run_until_seen(w, &seen);
    assert_int_equal(seen.result, HD_AUTH_REFUSED);
}

/* ---- principals ------------------------------------------------------- */

static void on_settled(void *ctx, int err)
{
    note(ctx, err);
}

static void a_known_principal_is_settled_at_once(void **state)
{
    struct app_world *w = *state;
    struct hd_identity *identity = hd_identity_new();
    char principal[HD_PRINCIPAL_SIZE];
    struct seen seen = {.calls = 0};

    assert_non_null(identity);
    identity->issuer = HD_S("main");
    identity->subject = HD_S("alice");
    assert_err(hd_auth_principal_derive(hd_auth_key(hd_auth_service_auth(w->app.auth_service), 0),
                                        HD_PRINCIPAL_PERSON, identity->issuer, identity->subject,
                                        principal),
               0);
    identity->principal = hd_slice_cstr(principal);
    assert_err(hd_auth_service_settle(w->app.auth_service, identity, on_settled, &seen), 0);
    seen.has_returned = true;
    run_until_seen(w, &seen);
    assert_err(seen.result, 0);
    seen = (struct seen){.calls = 0};
    assert_int_equal(hd_auth_service_settle(w->app.auth_service, identity, on_settled, &seen),
                     HD_READY);
    hd_identity_unref(identity);
}

/* ---- sign-in ---------------------------------------------------------- */

static void on_prepared(void *ctx)
{
    (void)ctx;
    fail();
}

static void on_signed(void *ctx, const struct hd_signed *result)
{
    note(ctx, result->status);
}

static int exchange(struct app_world *w, const char *name, const struct hd_oidc_grant *grant,
                    struct seen *seen)
{
    struct hd_signed result;
    int err;

    *seen = (struct seen){.calls = 0};
    err = hd_signer_exchange(hd_auth_service_signer(w->app.auth_service), hd_slice_cstr(name),
                             grant, HD_S("127.0.0.1"), on_signed, seen, &result);
    seen->has_returned = true;
    if (err == HD_READY)
        seen->result = result.status;
    return err;
}

static void an_exchange_never_calls_back_before_it_returns(void **state)
{
    const struct hd_oidc_grant none = {.code = HD_S("")},
                               grant = {.code = HD_S("code"),
                                        .verifier = HD_S(VERIFIER),
                                        .redirect_uri = HD_S("https://page.test/")};
    struct app_world *w = *state;
    struct seen seen;

    assert_int_equal(
        hd_signer_prepare(hd_auth_service_signer(w->app.auth_service), on_prepared, NULL),
        HD_READY);
    assert_int_equal(exchange(w, "unknown", &grant, &seen), HD_READY);
    assert_int_equal(seen.result, 404);
    assert_int_equal(exchange(w, "Main", &none, &seen), HD_READY);
    assert_int_equal(seen.result, 422);
    assert_err(exchange(w, "Main", &grant, &seen), 0);
    run_until_seen(w, &seen);
    assert_int_equal(seen.result, 502);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_check_never_calls_back_before_it_returns),
        cmocka_unit_test(a_known_principal_is_settled_at_once),
        cmocka_unit_test(an_exchange_never_calls_back_before_it_returns),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
