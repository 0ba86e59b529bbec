/* langgraph.json, the settings of its workers, and .env files. */
#include "config/project.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config_internal.h"
#include "config/dotenv.h"
#include "tests/unit/check.h"
#include "webhook/webhook_headers.h"

/* ---- a folder for each test --------------------------------------------- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    memcpy(folder, "/tmp/heddle-project-XXXXXX", sizeof("/tmp/heddle-project-XXXXXX"));
    return mkdtemp(folder) ? 0 : -1;
}

static void put_file(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"langgraph.json", "heddle.json", "agent.py", "chat.ts",
                                        "native.json",    ".env",        "auth.py",  "app.ts"};
    char path[256];

    (void)state;
    for (size_t i = 0; i < HD_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

static int load(struct hd_config *config, const char *name, const char *text,
                struct heddle_error *fault)
{
    char path[256];
    char *argv[] = {(char *)"serve", (char *)"--config", path, NULL};
    struct hd_config_source source = {.argc = 3, .argv = argv};

    put_file(name, text);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return hd_config_load(config, &source, fault);
}

static struct hd_config load_good(const char *text)
{
    struct heddle_error fault = {0};
    struct hd_config config;

    if (load(&config, "langgraph.json", text, &fault))
        fail_msg("%s", fault.text);
    return config;
}

/* ---- the file ------------------------------------------------------------- */

static void native_and_code_graphs_are_distinguished(void **state)
{
    struct hd_config config =
        load_good("{\"dependencies\": [\".\"], \"graphs\": {"
                  "\"py\": \"./agent.py:graph\","
                  "\"mod\": \"agents.chat:make\","
                  "\"ts\": {\"path\": \"./chat.ts:graph\", \"description\": \"d\"},"
                  "\"js\": \"./chat.mjs\","
                  "\"native\": \"./native.json\"}}");
    const struct hd_config_graph *graphs = config.graphs.items;

    (void)state;
    assert_int_equal(config.graphs.count, 5);
    assert_true(graphs[0].is_remote && graphs[0].language == HD_RT_PYTHON);
    assert_slice(graphs[0].path, HD_S("./agent.py:graph"));
    assert_true(graphs[1].is_remote && graphs[1].language == HD_RT_PYTHON);
    assert_true(graphs[2].is_remote && graphs[2].language == HD_RT_JS);
    assert_slice(graphs[2].description, HD_S("d"));
    assert_true(graphs[3].is_remote && graphs[3].language == HD_RT_JS);
    assert_false(graphs[4].is_remote);
    assert_non_null(strstr(graphs[4].file, "/./native.json"));
    assert_int_equal(config.warnings.count, 0);
    assert_true(hd_project_uses(&config, HD_RT_JS));
    hd_config_fini(&config);
}

static void keys_of_langgraph_are_settings(void **state)
{
    struct hd_config config = load_good(
        "{\"$schema\": \"x\", \"python_version\": \"3.12\", \"dockerfile_lines\": [],"
        " \"store\": {\"ttl\": {\"default_ttl\": 60, \"refresh_on_read\": false,"
        "   \"sweep_interval_minutes\": 7}, \"index\": {\"dims\": 3, \"embed\": \"openai:m\"}},"
        " \"checkpointer\": {\"ttl\": {\"strategy\": \"keep_latest\", \"default_ttl\": 30,"
        "   \"sweep_interval_minutes\": 4, \"sweep_limit\": 9}, \"serde\": {\"a\": 1}},"
        " \"http\": {\"cors\": {\"allow_origins\": [\"https://a\"], \"allow_credentials\": true,"
        "   \"allow_methods\": [\"GET\"], \"max_age\": 3},"
        "   \"configurable_headers\": {\"includes\": [\"x-*\"], \"excludes\": [\"x-b\"]},"
        "   \"disable_store\": true, \"mount_prefix\": \"/p\", \"logging_headers\": {\"includes\": "
        "[]}},"
        " \"webhooks\": {\"env_prefix\": \"W_\", \"url\": {\"require_https\": true,"
        "   \"disable_loopback\": true, \"allowed_ports\": [443], \"max_url_length\": 99}}}");

    (void)state;
    assert_int_equal(config.warnings.count, 0);
    assert_int_equal(config.ttl_items_us, INT64_C(3600000000));
    assert_false(config.ttl_refresh_on_read);
    assert_int_equal(config.ttl_threads_us, INT64_C(1800000000));
    assert_int_equal(config.ttl_strategy, HD_TTL_KEEP_LATEST);
    assert_int_equal(config.ttl_sweep_interval_us, 240000000); /* the shorter of the two */
    assert_non_null(config.store_index.val);
    assert_non_null(config.serde.val);
    assert_string_equal(config.store, "sqlite:heddle.db");
    assert_slice(config.cors_allow_origins.items[0], HD_S("https://a"));
    assert_slice(config.cors_allow_methods.items[0], HD_S("GET"));
    assert_true(config.cors_allow_credentials);
    assert_int_equal(config.cors_max_age, 3);
    assert_slice(config.headers_to_graphs.items[0], HD_S("x-*"));
    assert_slice(config.headers_not_to_graphs.items[0], HD_S("x-b"));
    assert_true(config.http_disable[HD_HTTP_STORE]);
    assert_false(config.http_disable[HD_HTTP_RUNS]);
    assert_string_equal(config.http_mount_prefix, "/p");
    assert_true(config.webhooks_require_https);
    assert_false(config.webhooks_allow_loopback);
    assert_int_equal(config.webhooks_allowed_ports.items[0], 443);
    assert_int_equal(config.webhooks_max_url_length, 99);
    assert_string_equal(config.webhooks_env_prefix, "W_");
    hd_config_fini(&config);
}

static bool is_warned(const struct hd_config *config, const char *of)
{
    for (size_t i = 0; i < config->warnings.count; i++) {
        if (strstr(config->warnings.items[i].ptr, of))
            return true;
    }
    return false;
}

static void unused_settings_cause_a_warning(void **state)
{
    struct hd_config config =
        load_good("{\"grafs\": {}, \"store\": {\"path\": \"./s.py:s\", \"indx\": {}},"
                  " \"http\": {\"disable_stores\": true}, \"ui\": {}, \"checkpointer\": null}");

    (void)state;
    assert_int_equal(config.warnings.count, 5);
    assert_true(is_warned(&config, "\"grafs\"; did you mean \"graphs\"?"));
    assert_true(is_warned(&config, "store.path is not used"));
    assert_true(is_warned(&config, "\"store.indx\"; did you mean \"store.index\"?"));
    assert_true(is_warned(&config, "did you mean \"http.disable_store\"?"));
    assert_true(is_warned(&config, "ui is not used"));
    hd_config_fini(&config);
}

static void other_files_are_strict(void **state)
{
    struct heddle_error fault = {0};
    struct hd_config config;

    (void)state;
    assert_err(load(&config, "heddle.json", "{\"grafs\": {}}", &fault), HD_EINVAL);
    assert_non_null(strstr(fault.text, "unknown setting \"grafs\"; did you mean \"graphs\"?"));
}

static void bad_projects_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"graphs\": {\"a\": \"./agent.py\"}}", "\"./agent.py:graph\""},
        {"{\"graphs\": {\"a\": \"./agent.rb:graph\"}}", "has an unknown language"},
        {"{\"graphs\": {\"a\": {\"description\": \"x\"}}}", "must be a path"},
        {"{\"encryption\": {\"path\": \"./e.py:e\"}}", "does not encrypt"},
        {"{\"http\": {\"mount_prefix\": \"p/\"}}", "not a path"},
        {"{\"http\": {\"cors\": {\"allow_origin_regex\": \"(\"}}}", "not a regular expression"},
        {"{\"http\": {\"cors\": {\"allow_methods\": [\"GET\\r\\nx\"]}}}", "not a valid name"},
        {"{\"webhooks\": {\"url\": {\"disable_loopback\": 1}}}", "must be a boolean"},
        {"{\"env\": 1}", "the path of a file or an object"},
        {"{\"runtime\": {\"key\": \"short\"}}", "too short"},
        {"{\"runtime\": {\"listen\": \"2025\"}}", "a host and a port"},
        {"{\"store\": 1}", "must be a string"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_config config;

        if (load(&config, "langgraph.json", cases[i].text, &fault) != HD_EINVAL ||
            !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, fault.text);
    }
}

static int load_all(void *arg)
{
    struct heddle_error fault = {0};
    struct hd_config config;
    int err = load(&config, "langgraph.json", arg, &fault);

    if (!err)
        hd_config_fini(&config);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    char text[] = "{\"dependencies\": [\".\"], \"graphs\": {\"a\": \"./a.py:g\"}, \"env\": {\"A\": "
                  "\"b\"}, \"store\": {\"index\": {}}, \"checkpointer\": {\"serde\": {}}}";

    (void)state;
    assert_true(check_every_allocation(load_all, text) > 0);
}

/* ---- settings of workers ----------------------------------------------------- */

/* With 0 workers only the files are checked. */
#define ALONE "\"runtime\": {\"workers\": 0}, "

static int make_settings(const char *text, struct hd_arena *arena, struct hd_rt_settings *out,
                         struct hd_config *config, struct heddle_error *fault)
{
    int err = load(config, "langgraph.json", text, fault);

    hd_arena_init(arena, 16 << 20);
    return err ? err : hd_project_settings(config, arena, out, fault);
}

static void each_language_receives_its_own_graphs(void **state)
{
    struct hd_rt_settings settings;
    struct heddle_error fault = {0};
    struct hd_config config;
    struct hd_arena arena;
    struct hd_slice told;
    char expected[512];

    (void)state;
    put_file("agent.py", "");
    put_file("chat.ts", "");
    put_file("auth.py", "");
    put_file("app.ts", "");
    if (make_settings("{" ALONE
                      "\"dependencies\": [\".\"], \"graphs\": {\"a\": \"./agent.py:graph\", "
                      "\"b\": \"./chat.ts:graph\"}, \"auth\": {\"path\": \"./auth.py:auth\"}, "
                      "\"http\": {\"app\": \"./app.ts:app\"}, \"drain\": 3}",
                      &arena, &settings, &config, &fault))
        fail_msg("%s", fault.text);
    told = settings.programs[HD_RT_PYTHON].project;
    (void)snprintf(expected, sizeof(expected),
                   "{\"folder\":\"%s\",\"graphs\":{\"a\":{\"path\":\"./agent.py:graph\"}},"
                   "\"dependencies\":[\".\"],\"auth\":{\"path\":\"./auth.py:auth\"},"
                   "\"reload\":false}",
                   folder);
    assert_slice(told, hd_slice_cstr(expected));
    told = settings.programs[HD_RT_JS].project;
    (void)snprintf(expected, sizeof(expected),
                   "{\"folder\":\"%s\",\"graphs\":{\"b\":{\"path\":\"./chat.ts:graph\"}},"
                   "\"dependencies\":[\".\"],\"app\":{\"path\":\"./app.ts:app\"},"
                   "\"reload\":false}",
                   folder);
    assert_slice(told, hd_slice_cstr(expected));
    assert_null(settings.programs[HD_RT_JS].argv[0]);
    assert_int_equal(settings.drain_us, 3000000);
    hd_arena_fini(&arena);
    hd_config_fini(&config);
}

static void files_that_are_not_there_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{" ALONE "\"graphs\": {\"a\": \"./agnt.py:graph\"}}",
         "graphs.a: ./agnt.py: no such file; did you mean \"agent.py\"?"},
        {"{" ALONE "\"graphs\": {\"a\": \"./src/agent.py:graph\"}}", "does not exist"},
        {"{" ALONE "\"auth\": {\"path\": \"./ath.py:auth\"}}", "auth.path: ./ath.py: no such file"},
        {"{" ALONE "\"http\": {\"app\": \"./app.py\"}}",
         "http.app: \"./app.py\" must be a file and a name in it"},
        {"{\"runtime\": {\"listen\": \"127.0.0.1:0\"}, \"graphs\": {\"a\": \"./agent.py:g\"}}",
         "runtime.listen needs runtime.key"},
    };

    (void)state;
    put_file("agent.py", "");
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_rt_settings settings;
        struct heddle_error fault = {0};
        struct hd_config config;
        struct hd_arena arena;

        if (make_settings(cases[i].text, &arena, &settings, &config, &fault) != HD_EINVAL ||
            !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, fault.text);
        hd_arena_fini(&arena);
        hd_config_fini(&config);
    }
}

static void programs_that_are_not_there_are_named(void **state)
{
    struct hd_rt_settings settings;
    struct heddle_error fault = {0};
    struct hd_config config;
    struct hd_arena arena;

    (void)state;
    put_file("agent.py", "");
    put_file("chat.ts", "");
    assert_err(make_settings("{\"graphs\": {\"a\": \"./agent.py:g\"}, \"runtime\": {\"python\": "
                             "\"/no/python\"}}",
                             &arena, &settings, &config, &fault),
               HD_EINVAL);
    assert_string_equal(fault.text, "runtime.python: \"/no/python\" is not a program");
    hd_arena_fini(&arena);
    hd_config_fini(&config);
    fault = (struct heddle_error){0};
    assert_err(make_settings("{\"graphs\": {\"a\": \"./chat.ts:g\"}, \"runtime\": {\"node\": "
                             "\"/bin/sh\"}}",
                             &arena, &settings, &config, &fault),
               HD_EINVAL);
    assert_non_null(strstr(fault.text, "npm install heddle"));
    hd_arena_fini(&arena);
    hd_config_fini(&config);
}

/* ---- variables ------------------------------------------------------------- */

static const char *look_up(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "HOME") == 0 ? "/home" : NULL;
}

static const char *value_of(const struct hd_dotenv *env, const char *name)
{
    for (size_t i = 0; i < env->count; i++) {
        if (strcmp(env->items[i].name, name) == 0)
            return env->items[i].value;
    }
    return NULL;
}

static void variables_are_read(void **state)
{
    static const struct {
        const char *text, *value; /* the value of A */
    } cases[] = {
        {"A=b", "b"},
        {"\xef\xbb\xbf# x\n\n  export A = b c  # d\r\n", "b c"},
        {"A=b#c", "b#c"},
        {"A=", ""},
        {"A= # none", ""},
        {"A", NULL},
        {"A='b $HOME ${HOME} \\n'  # c", "b $HOME ${HOME} \\n"},
        {"A=\"b\\n\\\"c\\\" \\x ${HOME}\"", "b\n\"c\" \\x /home"},
        {"A=\"b\nc\"\nB=1", "b\nc"},
        {"A=${HOME}/x", "/home/x"},
        {"A=${NONE}x", "x"},
        {"A=${NONE:-y}x", "yx"},
        {"A=${HOME:-y}", "/home"},
        {"B=1\nA=${B}2", "12"},
        {"A=${", "${"},
        {"A=${HOME", "${HOME"},
        {"A=$HOME", "$HOME"},
        {"A=1\nA=2", "2"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_dotenv env;
        struct hd_arena arena;
        const char *got;

        hd_arena_init(&arena, 1 << 20);
        if (hd_dotenv_parse(hd_slice_cstr(cases[i].text), look_up, NULL, &arena, &env, &fault))
            fail_msg("%s: %s", cases[i].text, fault.text);
        got = value_of(&env, "A");
        if (!got != !cases[i].value || (got && strcmp(got, cases[i].value) != 0))
            fail_msg("%s: got %s", cases[i].text, got ? got : "nothing");
        hd_arena_fini(&arena);
    }
}

static void lines_that_are_wrong_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"A=1\n\nB 2", "line 3: not NAME=value"},
        {"=1", "line 1: not NAME=value"},
        {"1A=1", "line 1: not NAME=value"},
        {"A=1\nB=\"secret\n\n", "line 2: the quote is not closed"},
        {"A='a' b", "line 1: unexpected text after the closing quote"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct heddle_error fault = {0};
        struct hd_dotenv env;
        struct hd_arena arena;

        hd_arena_init(&arena, 1 << 20);
        assert_err(hd_dotenv_parse(hd_slice_cstr(cases[i].text), NULL, NULL, &arena, &env, &fault),
                   HD_EINVAL);
        assert_string_equal(fault.text, cases[i].says);
        hd_arena_fini(&arena);
    }
}

static void the_environment_is_set(void **state)
{
    struct heddle_error fault = {0};
    struct hd_config config;

    (void)state;
    put_file(".env", "HD_TEST_A=1\nHD_TEST_B=\nHD_TEST_C=3\n");
    assert_int_equal(setenv("HD_TEST_A", "0", 1) | setenv("HD_TEST_B", "2", 1), 0);
    config = load_good("{\"env\": \".env\"}");
    assert_err(hd_project_set_environment(&config, &fault), 0);
    assert_string_equal(getenv("HD_TEST_A"), "1");
    assert_string_equal(getenv("HD_TEST_B"), "2");
    assert_string_equal(getenv("HD_TEST_C"), "3");
    hd_config_fini(&config);
    config = load_good("{\"env\": {\"HD_TEST_A\": 5, \"HD_TEST_B\": true}}");
    assert_err(hd_project_set_environment(&config, &fault), 0);
    assert_string_equal(getenv("HD_TEST_A"), "5");
    assert_string_equal(getenv("HD_TEST_B"), "true");
    hd_config_fini(&config);
    config = load_good("{\"env\": {\"A=B\": \"x\"}}");
    assert_err(hd_project_set_environment(&config, &fault), HD_EINVAL);
    assert_string_equal(fault.text, "env: \"A=B\" is not a variable name");
    hd_config_fini(&config);
}

/* ---- headers of webhooks ------------------------------------------------------ */

static void headers_take_variables_in(void **state)
{
    const char *headers[HD_WEBHOOK_MAX_HEADERS];
    struct heddle_error fault = {0};
    struct hd_config config;
    struct hd_arena arena;
    size_t count;

    (void)state;
    assert_int_equal(setenv("LG_WEBHOOK_T", "abc", 1), 0);
    config =
        load_good("{\"webhooks\": {\"headers\": {\"X-A\": \"Bearer ${{ env.LG_WEBHOOK_T }}.\", "
                  "\"X-B\": \"b\"}}}");
    hd_arena_init(&arena, 1 << 20);
    assert_err(hd_webhook_headers(&config, &arena, headers, &count, &fault), 0);
    assert_int_equal(count, 2);
    assert_string_equal(headers[0], "X-A: Bearer abc.");
    assert_string_equal(headers[1], "X-B: b");
    hd_arena_fini(&arena);
    hd_config_fini(&config);
}

static void headers_that_are_wrong_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"webhooks\": {\"headers\": {\"A\": \"${{ env.HOME }}\"}}}", "must begin with"},
        {"{\"webhooks\": {\"headers\": {\"A\": \"${{ env.LG_WEBHOOK_NONE }}\"}}}",
         "LG_WEBHOOK_NONE is not set"},
        {"{\"webhooks\": {\"headers\": {\"A\": \"${{ secrets.A }}\"}}}", "only ${{ env.NAME }}"},
        {"{\"webhooks\": {\"headers\": {\"A\": \"${{ env.A\"}}}", "not closed"},
        {"{\"webhooks\": {\"headers\": {\"A B\": \"x\"}}}", "not a valid header name"},
        {"{\"webhooks\": {\"headers\": {\"A\": \"x\\ny\"}}}", "control character"},
        {"{\"webhooks\": {\"headers\": {\"A\": 1}}}", "must be a string"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_config config = load_good(cases[i].text);
        struct heddle_error fault = {0};

        if (hd_webhook_headers_check(&config, &fault) != HD_EINVAL ||
            !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, fault.text);
        hd_config_fini(&config);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(native_and_code_graphs_are_distinguished),
        CASE(keys_of_langgraph_are_settings),
        CASE(unused_settings_cause_a_warning),
        CASE(other_files_are_strict),
        CASE(bad_projects_are_refused),
        CASE(every_allocation_may_fail),
        CASE(each_language_receives_its_own_graphs),
        CASE(files_that_are_not_there_are_named),
        CASE(programs_that_are_not_there_are_named),
        CASE(variables_are_read),
        CASE(lines_that_are_wrong_are_named),
        CASE(the_environment_is_set),
        CASE(headers_take_variables_in),
        CASE(headers_that_are_wrong_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
