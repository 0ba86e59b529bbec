/* The choice of a model: provider, URL and key. */
#include "agent/model/model_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"

/* "NAME=value" lines. */
static const char *get_env(void *ctx, const char *name)
{
    const char *const *list = ctx;
    size_t len = strlen(name);

    for (; list && *list; list++) {
        if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
            return *list + len + 1;
    }
    return NULL;
}

static struct hd_val *parse(const char *text)
{
    char *copy = strdup(text);
    struct hd_val *val = NULL;

    assert_non_null(copy);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    assert_err(hd_val_parse_json(hd_slice_cstr(copy), &val, NULL), 0);
    free(copy);
    return val;
}

struct example {
    const char *settings;
    const char *const *env;
    const char *result; /* "provider model url key", or an error: "Type: part of the text" */
};

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void show(const struct hd_model_choice *c, char *out, size_t size)
{
    (void)snprintf(out, size, "%s %.*s %.*s %.*s", c->provider->name, (int)c->model.len,
                   c->model.ptr ? c->model.ptr : "", (int)c->base_url.len,
                   c->base_url.ptr ? c->base_url.ptr : "", (int)c->key.len,
                   c->key.ptr ? c->key.ptr : "");
}

static void check(const struct example *example)
{
    struct hd_val *given = parse(example->settings);
    struct hd_val *defaults = parse("{'model_name':'openai:gpt-4o','temperature':0.7,"
                                    "'max_tokens':4000}");
    struct hd_val *secrets = parse("{'heddle:secret:k':'revealed'}");
    struct hd_settings settings;
    struct hd_model_choice choice;
    char text[1024];
    int err;

    hd_settings_init(&settings, given, defaults);
    settings.secrets = secrets;
    settings.env = get_env;
    settings.env_ctx = (void *)example->env;
    settings.graph = HD_S("agent");
    err = hd_model_choose(&settings, &choice);
    if (err)
        (void)snprintf(text, sizeof(text), "%s: %s", choice.error_type, choice.fault.text);
    else
        show(&choice, text, sizeof(text));
    if (err ? !strstr(text, example->result) : strcmp(text, example->result) != 0)
        fail_msg("%s: got %s, expected %s", example->settings, text, example->result);
    hd_model_choice_fini(&choice);
    hd_val_unref(given);
    hd_val_unref(defaults);
    hd_val_unref(secrets);
}

static void check_all(const struct example *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(&list[i]);
}

static void without_anything_it_is_the_offline_model(void **unused)
{
    const struct example list[] = {
        {"{}", NULL, "offline offline  "},
        {"{'temperature':1,'system_prompt':'x'}", NULL, "offline offline  "},
        {"{'model_name':'offline:'}", ENV("OPENAI_API_KEY=K"), "offline offline  "},
        {"{'model_name':'openai:gpt-4o'}", NULL, "AuthenticationError: no key for openai"},
        {"{}", ENV("MODEL_NAME=gpt-x"), "AuthenticationError: no key for openai"},
    };

    (void)unused;
    check_all(list, HD_COUNT(list));
}

static void models_are_chosen_by_provider(void **unused)
{
    const char *const *env = ENV("OPENAI_API_KEY=OK", "ANTHROPIC_API_KEY=AK", "GOOGLE_API_KEY=GK");
    const struct example list[] = {
        {"{}", env, "openai gpt-4o https://api.openai.com/v1 OK"},
        {"{'model_name':'gpt-4.1'}", env, "openai gpt-4.1 https://api.openai.com/v1 OK"},
        {"{'model_name':'ft:gpt:me'}", env, "openai ft:gpt:me https://api.openai.com/v1 OK"},
        {"{'model_name':'anthropic:claude'}", env, "anthropic claude https://api.anthropic.com AK"},
        {"{'model_name':'google:gemini-2'}", env,
         "google gemini-2 https://generativelanguage.googleapis.com GK"},
        {"{'model_name':'a','model_name_override':'anthropic:b'}", env,
         "anthropic b https://api.anthropic.com AK"},
        {"{'model_name':''}", env, "openai gpt-4o https://api.openai.com/v1 OK"},
        {"{}", ENV("OPENAI_API_KEY=OK", "MODEL_NAME=openai:env"),
         "openai env https://api.openai.com/v1 OK"},
        {"{'model_name':'mine'}", ENV("OPENAI_API_KEY=OK", "MODEL_NAME=env"),
         "openai mine https://api.openai.com/v1 OK"},
        {"{'assistant':{'configurable':{'model_name':'under'}}}", env,
         "openai under https://api.openai.com/v1 OK"},
        {"{'model_name':'over','assistant_config':{'model_name':'under'}}", env,
         "openai over https://api.openai.com/v1 OK"},
        {"{'model_name':'anthropic:c'}",
         ENV("ANTHROPIC_API_KEY=AK", "ANTHROPIC_BASE_URL=http://a/"), "anthropic c http://a AK"},
        {"{'model_name':'google:g'}", ENV("GEMINI_API_KEY=GK", "GOOGLE_BASE_URL=http://g"),
         "google g http://g GK"},
        {"{'model_name':'custom:x'}", env, "ValueError: base_url must be set"},
    };

    (void)unused;
    check_all(list, HD_COUNT(list));
}

static void keys_go_only_where_they_belong(void **unused)
{
    const struct example list[] = {
        /* The environment's key is never sent to a server that the request chose. */
        {"{'base_url':'http://evil/v1','custom_model_name':'x:y'}", ENV("OPENAI_API_KEY=OK"),
         "openai y http://evil/v1 EMPTY"},
        {"{'base_url':'http://b/v1/','custom_model_name':'m','custom_api_key':'CK'}",
         ENV("CUSTOM_API_KEY=EK"), "openai m http://b/v1 CK"},
        {"{'base_url':'http://b','model_name':'openai:m'}", ENV("CUSTOM_API_KEY=EK"),
         "openai m http://b EK"},
        {"{'base_url':'http://b','model_name':'m','apiKeys':{'OPENAI_API_KEY':'RK'}}",
         ENV("OPENAI_API_KEY=OK"), "openai m http://b RK"},
        {"{'model_name':'m'}", ENV("OPENAI_BASE_URL=http://o/v1", "OPENAI_API_KEY=OK"),
         "openai m http://o/v1 OK"},
        {"{'model_name':'m'}", ENV("OPENAI_API_BASE=http://o/v1"), "openai m http://o/v1 EMPTY"},
        {"{'model_name':'m','apiKeys':{'OPENAI_API_KEY':'RK'}}", ENV("OPENAI_API_KEY=OK"),
         "openai m https://api.openai.com/v1 RK"},
        {"{'base_url':'http://b','model_name':'m','custom_api_key':'heddle:secret:k'}", NULL,
         "openai m http://b revealed"},
        {"{'base_url':'http://b','model_name':'m','custom_api_key':'heddle:secret:gone'}", NULL,
         "AuthenticationError: the key that this run was started with is no longer known"},
        {"{'model_name':'m','apiKeys':{'OPENAI_API_KEY':'heddle:secret:k'}}", NULL,
         "openai m https://api.openai.com/v1 revealed"},
    };

    (void)unused;
    check_all(list, HD_COUNT(list));
}

static void bad_settings_are_errors(void **unused)
{
    const struct example list[] = {
        {"{'temperature':2.1}", NULL, "ValueError: temperature"},
        {"{'temperature':'warm'}", NULL, "ValueError: temperature"},
        {"{'max_tokens':0}", NULL, "ValueError: max_tokens"},
        {"{'max_tokens':[1]}", NULL, "ValueError: max_tokens"},
        {"{'base_url':'ftp://x','model_name':'m'}", NULL, "ValueError: base_url"},
        {"{'base_url':'http://x y','model_name':'m'}", NULL, "ValueError: base_url"},
    };

    (void)unused;
    check_all(list, HD_COUNT(list));
}

static void the_router_comes_before_all_but_an_override(void **unused)
{
    const char *const *env =
        ENV("SEMANTIC_ROUTER_ENABLED=true", "SEMANTIC_ROUTER_URL=http://r/v1", "OPENAI_API_KEY=OK");
    const struct example list[] = {
        {"{'model_name':'m','x-org-id':'o1'}", env, "openai MoM http://r/v1 OK"},
        {"{'model_name_override':'openai:z'}", env, "openai z http://r/v1 OK"},
        {"{'custom_model_name':'c','base_url':'http://b'}",
         ENV("SEMANTIC_ROUTER_ENABLED=1", "SEMANTIC_ROUTER_URL=http://r",
             "SEMANTIC_ROUTER_MODEL=R"),
         "openai R http://r "},
        {"{'model_name':'m'}", ENV("SEMANTIC_ROUTER_URL=http://r", "OPENAI_API_KEY=OK"),
         "openai m https://api.openai.com/v1 OK"},
    };

    (void)unused;
    check_all(list, HD_COUNT(list));
}

static void numbers_may_be_strings_and_are_rounded(void **unused)
{
    struct hd_val *given = parse("{'max_tokens':'99.6','temperature':'0.5','model_name':'m',"
                                 "'base_url':'http://b','x-org-id':'org','x-user-tier':'gold'}");
    struct hd_settings settings;
    struct hd_model_choice choice;

    (void)unused;
    hd_settings_init(&settings, given, NULL);
    settings.env = get_env;
    settings.graph = HD_S("agent");
    assert_err(hd_model_choose(&settings, &choice), 0);
    assert_int_equal(choice.max_tokens, 100);
    assert_true(choice.has_temperature && choice.temperature == 0.5);
    assert_slice(hd_buf_slice(&choice.org), HD_S("org"));
    assert_slice(hd_buf_slice(&choice.tier), HD_S("gold"));
    assert_slice(hd_buf_slice(&choice.graph), HD_S("agent"));
    hd_model_choice_fini(&choice);
    hd_val_unref(given);
}

/* A private address is allowed only where the operator alone can have named it. */
static void urls_of_requests_are_distinguished_from_the_operators(void **unused)
{
    static const struct {
        const char *given, *defaults;
        bool are_fixed, is_own;
    } table[] = {
        {"{}", "{'model_name':'openai:m'}", true, true},
        {"{'model_name':'anthropic:m'}", "{}", true, true},
        {"{'base_url':'http://b','model_name':'m'}", "{}", true, false},
        {"{'assistant':{'configurable':{'base_url':'http://b','model_name':'m'}}}", "{}", true,
         false},
        {"{'base_url':'http://b','model_name':'m'}", "{'base_url':'http://b'}", true, false},
        {"{'model_name':'m'}", "{'base_url':'http://b'}", true, true},
        {"{'model_name':'m'}", "{'base_url':'http://b'}", false, false},
    };
    const char *const *env = ENV("OPENAI_BASE_URL=http://a", "ANTHROPIC_API_KEY=K");

    (void)unused;
    for (size_t i = 0; i < HD_COUNT(table); i++) {
        struct hd_val *given = parse(table[i].given), *defaults = parse(table[i].defaults);
        struct hd_settings settings;
        struct hd_model_choice choice;

        hd_settings_init(&settings, given, defaults);
        settings.are_fixed = table[i].are_fixed;
        settings.env = get_env;
        settings.env_ctx = (void *)env;
        assert_err(hd_model_choose(&settings, &choice), 0);
        if (choice.is_own_url != table[i].is_own)
            fail_msg("%s %s", table[i].given, table[i].defaults);
        hd_model_choice_fini(&choice);
        hd_val_unref(given);
        hd_val_unref(defaults);
    }
}

static int choose(void *arg)
{
    const char *const *env = ENV("CUSTOM_API_KEY=K");
    struct hd_settings settings;
    struct hd_model_choice choice;
    int err;

    hd_settings_init(&settings, arg, NULL);
    settings.env = get_env;
    settings.env_ctx = (void *)env;
    err = hd_model_choose(&settings, &choice);
    hd_model_choice_fini(&choice);
    return err;
}

static void every_allocation_may_fail(void **unused)
{
    struct hd_val *given = parse("{'base_url':'http://b','model_name':'m','x-org-id':'o',"
                                 "'custom_api_key':'k'}");

    (void)unused;
    assert_true(check_every_allocation(choose, given) >= 4);
    hd_val_unref(given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_anything_it_is_the_offline_model),
        cmocka_unit_test(models_are_chosen_by_provider),
        cmocka_unit_test(keys_go_only_where_they_belong),
        cmocka_unit_test(bad_settings_are_errors),
        cmocka_unit_test(the_router_comes_before_all_but_an_override),
        cmocka_unit_test(numbers_may_be_strings_and_are_rounded),
        cmocka_unit_test(urls_of_requests_are_distinguished_from_the_operators),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
