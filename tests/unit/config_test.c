#include "config/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/config_internal.h"
#include "tests/unit/check.h"

#define MAX_WORDS 16

struct given {
    const char *flags[MAX_WORDS];
    const char *env[MAX_WORDS];
};

static int load(struct hd_config *config, const struct given *given, struct heddle_error *fault)
{
    const char *argv[MAX_WORDS + 2] = {"serve"};
    struct hd_config_source source = {1, (char **)argv, (char **)given->env};

    for (; given->flags[source.argc - 1]; source.argc++)
        argv[source.argc] = given->flags[source.argc - 1];
    return hd_config_load(config, &source, fault);
}

static struct hd_config load_good(const struct given *given)
{
    struct hd_config config;
    struct heddle_error fault = {0};

    if (load(&config, given, &fault) != 0)
        fail_msg("%s", fault.text);
    return config;
}

#define LOAD(...) load_good(&(struct given){__VA_ARGS__})

/* Writes the text to a separate file; the name is valid until the next call. */
static const char *write_file(const char *text)
{
    static char path[] = "/tmp/heddle-config-XXXXXX";
    int fd;

    memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
    return path;
}

static void check_defaults(const struct hd_config *config)
{
    assert_string_equal(config->host, "127.0.0.1");
    assert_int_equal(config->port, 2024);
    assert_false(config->port_is_given);
    assert_string_equal(config->store, "sqlite:heddle.db");
    assert_int_equal(config->graphs.count, 0);
    assert_int_equal(config->max_body, 64 << 20);
    assert_int_equal(config->max_connections, 10000);
    assert_int_equal(config->idle_timeout_us, 75000000);
    assert_int_equal(config->max_runs, 1000);
    assert_int_equal(config->run_timeout_us, INT64_C(3600000000));
    assert_int_equal(config->drain_us, 10000000);
    assert_true(config->stream_end_event);
    assert_int_equal(config->stream_heartbeat_ms, 5000);
    assert_int_equal(config->stream_memory, 256 << 20);
    assert_int_equal(config->stream_retention_us, INT64_C(86400000000));
    assert_int_equal(config->stream_retention_events, 100000);
    assert_int_equal(config->stream_retention_bytes, 64 << 20);
    assert_false(config->errors_plain_text);
    assert_true(config->namespaces_show);
    assert_int_equal(config->cors_allow_origins.count, 0);
    assert_int_equal(config->ttl_threads_us, 0);
    assert_int_equal(config->ttl_strategy, HD_TTL_DELETE);
    assert_int_equal(config->ttl_items_us, 0);
    assert_true(config->ttl_refresh_on_read);
    assert_int_equal(config->ttl_sweep_interval_us, 300000000);
    assert_false(config->webhooks_require_https);
    assert_true(config->webhooks_allow_loopback);
    assert_int_equal(config->webhooks_allowed_domains.count, 0);
    assert_int_equal(config->webhooks_allowed_ports.count, 0);
    assert_string_equal(config->webhooks_secret, "");
    assert_int_equal(config->webhooks_retries, 5);
    assert_int_equal(config->webhooks_timeout_us, 10000000);
    assert_int_equal(config->log_level, HD_LOG_INFO);
    assert_int_equal(config->log_format, HD_LOG_TEXT);
    assert_false(config->log_access);
    assert_true(config->metrics);
}

static void nothing_given_means_the_defaults(void **state)
{
    struct hd_config config = LOAD(0);

    (void)state;
    check_defaults(&config);
    hd_config_fini(&config);
    assert_err(hd_config_load(&config, &(struct hd_config_source){0}, NULL), 0);
    check_defaults(&config);
    hd_config_fini(&config);
}

static void flags_are_read(void **state)
{
    struct hd_config config =
        LOAD(.flags = {"--port", "0", "--store=memory:", "--graph", "a=x/a.json",
                       "--graph=b=/b.json", "--stream-end-event=false", "--no-metrics",
                       "--errors-plain-text", "--run-timeout", "2.5", "--max-body=2k",
                       "--webhooks-allowed-ports=443, 8443"});

    (void)state;
    assert_int_equal(config.port, 0);
    assert_true(config.port_is_given);
    assert_string_equal(config.store, "memory:");
    assert_int_equal(config.graphs.count, 2);
    assert_slice(config.graphs.items[0].id, HD_S("a"));
    assert_string_equal(config.graphs.items[0].file, "x/a.json");
    assert_string_equal(config.graphs.items[1].file, "/b.json");
    assert_false(config.stream_end_event);
    assert_false(config.metrics);
    assert_true(config.errors_plain_text);
    assert_int_equal(config.run_timeout_us, 2500000);
    assert_int_equal(config.max_body, 2048);
    assert_int_equal(config.webhooks_allowed_ports.count, 2);
    assert_int_equal(config.webhooks_allowed_ports.items[1], 8443);
    hd_config_fini(&config);
}

static void the_environment_is_read(void **state)
{
    struct hd_config config =
        LOAD(.env = {"PATH=/bin", "HEDDLE_PORT=8123", "HEDDLE_GRAPHS=a=1.json,b=2.json",
                     "HEDDLE_STREAM_RETENTION_MINUTES=0.5", "HEDDLE_LOG_LEVEL=debug",
                     "HEDDLE_METRICS=off", "HEDDLE_TTL_STRATEGY=keep_latest", "HEDDLE_MAX_RUNS=",
                     "HEDDLE_TEST_URLS=x", "HEDDLE_BUILD=/x", "HEDDLE_CORS_ALLOW_ORIGINS=a, b"});

    (void)state;
    assert_int_equal(config.port, 8123);
    assert_int_equal(config.graphs.count, 2);
    assert_string_equal(config.graphs.items[1].file, "2.json");
    assert_int_equal(config.stream_retention_us, 30000000);
    assert_int_equal(config.log_level, HD_LOG_DEBUG);
    assert_false(config.metrics);
    assert_int_equal(config.ttl_strategy, HD_TTL_KEEP_LATEST);
    assert_int_equal(config.max_runs, 1000);
    assert_slice(config.cors_allow_origins.items[1], HD_S("b"));
    hd_config_fini(&config);
}

static void the_file_is_read(void **state)
{
    const char *path = write_file(
        "{\"port\": 9000, \"stream\": {\"end_event\": false, \"retention\": {\"events\": 5}},\n"
        " \"stream.heartbeat\": 1.5, \"max_body\": \"1MiB\", \"log\": null, \"max_runs\": null,\n"
        " \"graphs\": {\"a\": \"a.json\", \"b\": {\"path\": \"/b.json\", \"description\": "
        "\"B\"}},\n"
        " \"webhooks\": {\"allowed_ports\": [443], \"allowed_domains\": [\"x.org\"],\n"
        "              \"secret\": \"s3\"}}");
    struct hd_config config =
        LOAD(.env = {"HEDDLE_CONFIG=/nonexistent"}, .flags = {"--config", path});

    (void)state;
    assert_int_equal(config.port, 9000);
    assert_true(config.port_is_given);
    assert_false(config.stream_end_event);
    assert_int_equal(config.stream_retention_events, 5);
    assert_int_equal(config.stream_heartbeat_ms, 1500);
    assert_int_equal(config.max_body, 1 << 20);
    assert_int_equal(config.max_runs, 1000);
    assert_int_equal(config.graphs.count, 2);
    assert_string_equal(config.graphs.items[0].file, "/tmp/a.json");
    assert_string_equal(config.graphs.items[1].file, "/b.json");
    assert_slice(config.graphs.items[1].description, HD_S("B"));
    assert_int_equal(config.webhooks_allowed_ports.items[0], 443);
    assert_slice(config.webhooks_allowed_domains.items[0], HD_S("x.org"));
    assert_string_equal(config.webhooks_secret, "s3");
    hd_config_fini(&config);
    assert_int_equal(unlink(path), 0);
}

static void a_flag_wins_over_the_environment_over_the_file(void **state)
{
    const char *path =
        write_file("{\"port\": 1, \"max_runs\": 1, \"run_timeout\": 1,\n"
                   " \"graphs\": {\"a\": \"a\"}, \"cors\": {\"allow_origins\": [\"f\"]}}");
    char variable[64];
    struct hd_config config;

    (void)state;
    (void)snprintf(variable, sizeof(variable), "HEDDLE_CONFIG=%s", path);
    config = LOAD(.flags = {"--port=3", "--port=4", "--graph=c=c", "--graph=d=d"},
                  .env = {"HEDDLE_MAX_RUNS=2", variable, "HEDDLE_PORT=2", "HEDDLE_GRAPHS=b=b"});
    assert_int_equal(config.port, 4);
    assert_int_equal(config.max_runs, 2);
    assert_int_equal(config.run_timeout_us, 1000000);
    assert_int_equal(config.graphs.count, 2);
    assert_slice(config.graphs.items[0].id, HD_S("c"));
    assert_int_equal(config.cors_allow_origins.count, 1);
    hd_config_fini(&config);
    assert_int_equal(unlink(path), 0);
}

/* ---- errors ------------------------------------------------------------------ */

struct bad {
    const char *given;
    const char *says;
};

static void bad_flags_are_refused(void **state)
{
    static const struct bad cases[] = {
        {"--port=65536", "--port: \"65536\" is not a number from 0 to 65535"},
        {"--port=x", "--port: \"x\" is not a number from 0 to 65535"},
        {"--port=-1", "--port: \"-1\" is not a number"},
        {"--port=", "--port: \"\" is not a number"},
        {"--port=99999999999999999999999", "is not a number from 0"},
        {"--port", "--port: needs a value"},
        {"--prot=1", "--prot: unknown option; did you mean \"--port\"?"},
        {"--stream-endevent", "did you mean \"--stream-end-event\"?"},
        {"--qqqqqqqqqqqqqqqqqq", "--qqqqqqqqqqqqqqqqqq: unknown option"},
        {"-p", "-p: unknown option"},
        {"false", "\"false\" is not an option; the value of a switch follows \"=\""},
        {"--no-port", "--no-port: unknown option"},
        {"--no-metrics=true", "--no-metrics: takes no value"},
        {"--metrics=maybe", "--metrics: \"maybe\" is neither true nor false"},
        {"--max-body=1t", "--max-body: \"1t\" is not a number from 1024 to 1073741824"},
        {"--max-body=2g", "is not a number from 1024 to 1073741824 (k, m, g may follow it)"},
        {"--max-body=9007199254740992g", "is not a number from 1024"},
        {"--max-body=1kb", "is not a number from 1024"},
        {"--max-body=m", "is not a number from 1024"},
        {"--run-timeout=0", "\"0\" is not a number of seconds from 0.1 to 31622400"},
        {"--run-timeout=1.", "is not a number of seconds"},
        {"--run-timeout=1.1234567", "is not a number of seconds"},
        {"--run-timeout=1s", "is not a number of seconds"},
        {"--ttl-threads=-5", "is not a number of minutes from 0 to "},
        {"--ttl-strategy=drop", "\"drop\" is not one of delete, keep_latest"},
        {"--log-level=loud", "\"loud\" is not one of debug, info, warn, error, off"},
        {"--graph=a", "--graph: \"a\" is not ID=FILE"},
        {"--graph=a =c", "\"a \" is not a graph's id"},
        {"--graph==c", "\"\" is not a graph's id"},
        {"--graph=a=", "\"a\" needs the path of a file"},
        {"--graph=a=b,a=c", "\"a\" is a duplicate"},
        {"--webhooks-allowed-ports=0", "\"0\" is not a port from 1 to 65535"},
        {"--webhooks-allowed-ports=1,,2", "\"\" is not a port"},
        {"--cors-allow-origins=a,,b", "\"\" is not a value for a list"},
        {"--store=heddle.db", "--store: "},
        {"--store=sqlite:", "--store: "},
        {"--host=", "--host: a value is missing"},
        {"--host=http://x", "--host: not a host name or address"},
        {"--host=0.0.0.0", "host 0.0.0.0 is reachable from other machines"},
        {"--host=example.org", "listen on 127.0.0.1, ::1 or localhost"},
        {"--config=/nonexistent/heddle.json", "/nonexistent/heddle.json: No such file"},
        {"--config=/", "/: "},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct given given = {.flags = {cases[i].given}};
        struct hd_config config;
        struct heddle_error fault = {0};

        if (load(&config, &given, &fault) != HD_EINVAL || !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].given, fault.text);
    }
}

static void bad_variables_are_refused(void **state)
{
    static const struct bad cases[] = {
        {"HEDDLE_PORT=x", "HEDDLE_PORT: \"x\" is not a number from 0 to 65535"},
        {"HEDDLE_PRT=1", "HEDDLE_PRT: unknown variable; did you mean \"HEDDLE_PORT\"?"},
        {"HEDDLE_STREAM_ENDEVENT=1", "did you mean \"HEDDLE_STREAM_END_EVENT\"?"},
        {"HEDDLE_GRAPH=a=b", "did you mean \"HEDDLE_GRAPHS\"?"},
        {"HEDDLE_CONFIG=/nonexistent", "/nonexistent: No such file"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct given given = {.env = {cases[i].given}};
        struct hd_config config;
        struct heddle_error fault = {0};

        if (load(&config, &given, &fault) != HD_EINVAL || !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].given, fault.text);
    }
}

static void bad_files_are_refused(void **state)
{
    static const struct bad cases[] = {
        {"", "f.json: not valid JSON: the text is empty"},
        {"{", "f.json: not valid JSON at byte"},
        {"[]", "f.json: must be an object, not an array"},
        {"{\"prt\": 1}", "f.json: unknown setting \"prt\"; did you mean \"port\"?"},
        {"{\"stream\": {\"endevent\": true}}",
         "unknown setting \"stream.endevent\"; did you mean \"stream.end_event\"?"},
        {"{\"stream\": 5}", "f.json: stream: must be an object, not a number"},
        {"{\"strea\": {}}", "unknown setting \"strea\""},
        {"{\"config\": \"x\"}", "unknown setting \"config\""},
        {"{\"\": 1}", "unknown setting \"\""},
        {"{\"port\\u0000\": 1}", "unknown setting"},
        {"{\"port\": \"1\"}", "f.json: port: must be a number, not a string"},
        {"{\"port\": 1.5}", "f.json: port: \"1.5\" is not a number from 0 to 65535"},
        {"{\"port\": 1, \"port\": 2}", "f.json: duplicate setting \"port\""},
        {"{\"stream\": {\"end_event\": true}, \"stream.end_event\": true}",
         "duplicate setting \"stream.end_event\""},
        {"{\"metrics\": 1}", "f.json: metrics: must be a boolean, not a number"},
        {"{\"host\": 1}", "f.json: host: must be a string, not a number"},
        {"{\"host\": \"a\\u0000b\"}", "f.json: host: "},
        {"{\"max_body\": true}", "must be a number or a string such as \"64m\", not a boolean"},
        {"{\"graphs\": []}", "f.json: graphs: must be an object of ids and files, not an array"},
        {"{\"graphs\": {\"a\": 1}}", "\"a\" must be a path or {\"path\""},
        {"{\"graphs\": {\"a\": {}}}", "\"a\" must be a path or {\"path\""},
        {"{\"graphs\": {\"a\": {\"path\": \"x\", \"description\": 1}}}", "must be a path or"},
        {"{\"graphs\": {\"a\": \"x\", \"a\": \"x\"}}", "\"a\" is a duplicate"},
        {"{\"webhooks\": {\"allowed_ports\": [\"x\"]}}", "must be an array of numbers"},
        {"{\"webhooks\": {\"allowed_domains\": [1]}}", "must be an array of strings"},
        {"{\"webhooks\": {\"allowed_domains\": \"x\"}}", "must be an array, not a string"},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++) {
        struct hd_config config = {0};
        struct heddle_error fault = {0};

        hd_arena_init(&config.arena, 1 << 20);
        if (hd_config_read_json(&config, "f.json", hd_slice_cstr(cases[i].given), &fault) !=
                HD_EINVAL ||
            !strstr(fault.text, cases[i].says))
            fail_msg("%s: %s", cases[i].given, fault.text);
        hd_config_fini(&config);
    }
}

static void secrets_are_not_repeated(void **state)
{
    static const char *const flags[] = {"--store=postgresql//me:secret@h",
                                        "--store=postgresql://me:secret@h?pool=0"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(flags); i++) {
        struct given given = {.flags = {flags[i]}};
        struct heddle_error fault = {0};
        struct hd_config config;

        assert_err(load(&config, &given, &fault), HD_EINVAL);
        assert_null(strstr(fault.text, "secret"));
    }
}

static void lists_have_a_limit(void **state)
{
    char text[HD_CONFIG_MAX_ITEMS * 2 + 64] = "--cors-allow-origins=";
    struct given given = {.flags = {text}};
    struct heddle_error fault = {0};
    struct hd_config config;
    size_t len = strlen(text);

    (void)state;
    for (size_t i = 0; i < HD_CONFIG_MAX_ITEMS; i++, len += 2)
        memcpy(text + len, "a,", 3);
    config = load_good(&given);
    assert_int_equal(config.cors_allow_origins.count, HD_CONFIG_MAX_ITEMS);
    hd_config_fini(&config);
    memcpy(text + len, "a", 2);
    assert_err(load(&config, &given, &fault), HD_EINVAL);
    assert_string_equal(fault.text, "--cors-allow-origins: more than 1000 values");
}

/* ---- loopback ------------------------------------------------------------------ */

static void loopback_is_distinguished_from_other_hosts(void **state)
{
    static const char *const near[] = {"127.0.0.1",       "127.8.9.10",      "::1",
                                       "[::1]",           "localhost",       "LocalHost",
                                       "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"};
    static const char *const far[] = {"0.0.0.0",
                                      "::",
                                      "128.0.0.1",
                                      "10.0.0.1",
                                      "",
                                      "example.org",
                                      "127.0.0.1.example.org",
                                      "localhost.example.org",
                                      "[::]",
                                      "[",
                                      "[]",
                                      "127.1",
                                      "::ffff:10.0.0.1",
                                      "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"};

    (void)state;
    for (size_t i = 0; i < HD_COUNT(near); i++)
        assert_true(hd_config_is_loopback(near[i]));
    for (size_t i = 0; i < HD_COUNT(far); i++)
        assert_false(hd_config_is_loopback(far[i]));
    assert_err(hd_config_check_host("0.0.0.0", true, NULL), 0);
    assert_err(hd_config_check_host("0.0.0.0", false, NULL), HD_EINVAL);
}

/* ---- objects -------------------------------------------------------------------- */

static int read_text(struct hd_config *config, const char *text, struct heddle_error *fault)
{
    *config = (struct hd_config){0};
    hd_arena_init(&config->arena, (size_t)8 * HD_CONFIG_MAX_FILE);
    return hd_config_read_json(config, "etc/heddle.json", hd_slice_cstr(text), fault);
}

static void objects_are_kept_as_they_are(void **state)
{
    struct heddle_error fault = {0};
    struct hd_config config;

    (void)state;
    assert_err(read_text(&config, "{\"auth\": {\"cache\": 1e1, \"a\": [null]}}", &fault), 0);
    assert_slice(hd_json_number_text(hd_json_get(config.auth.val, HD_S("cache"))), HD_S("1e1"));
    assert_int_equal(hd_json_size(hd_json_get(config.auth.val, HD_S("a"))), 1);
    assert_slice(config.auth.folder, HD_S("etc"));
    hd_config_fini(&config);
    assert_err(read_text(&config, "{\"auth\": null}", &fault), 0);
    assert_null(config.auth.val);
    hd_config_fini(&config);
    assert_err(read_text(&config, "{\"auth\": true}", &fault), HD_EINVAL);
    assert_string_equal(fault.text, "etc/heddle.json: auth: must be an object, not a boolean");
    hd_config_fini(&config);
}

static void files_may_have_comments(void **state)
{
    struct heddle_error fault = {0};
    struct hd_config config;

    (void)state;
    assert_err(read_text(&config, "// a\n{/* b */ \"max_runs\": 7 // c\n}\n/* d */", &fault), 0);
    assert_int_equal(config.max_runs, 7);
    hd_config_fini(&config);
    assert_err(read_text(&config, "{\"max_runs\": 7 /* b}", &fault), HD_EINVAL);
    hd_config_fini(&config);
}

/* ---- texts ---------------------------------------------------------------------- */

static void help_has_every_option(void **state)
{
    const struct hd_setting *setting;
    struct hd_buf help;
    size_t column = 0;

    (void)state;
    hd_buf_init(&help, 65536);
    assert_err(hd_config_help(&help), 0);
    assert_err(hd_buf_append_byte(&help, '\0'), 0);
    for (size_t i = 0; (setting = hd_setting_at(i)); i++) {
        char flag[HD_CONFIG_MAX_NAME];

        hd_setting_flag(setting, flag);
        if (hd_setting_is_json(setting))
            continue;
        if (!strstr(help.ptr, flag) || !strstr(help.ptr, setting->help))
            fail_msg("%s is not in the help", flag);
    }
    for (const char *c = help.ptr; *c; c++) {
        column = *c == '\n' ? 0 : column + ((*c & 0xc0) != 0x80);
        if (column > 100)
            fail_msg("a line of the help is too long: %.*s", 60, c - 60);
    }
    hd_buf_fini(&help);
}

static char *read_docs(void)
{
    static char text[65536];
    char path[4096];
    size_t len;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/../../docs/configuration.md", getenv("HD_TEST_DATA"));
    file = fopen(path, "r");
    assert_non_null(file);
    len = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    return text;
}

/* The document has a row for each setting; the expected row is printed when it is missing. */
static void docs_have_every_setting(void **state)
{
    const struct hd_setting *setting;
    char *docs = read_docs();
    int missing = 0;

    (void)state;
    for (size_t i = 0; (setting = hd_setting_at(i)); i++) {
        char row[512];

        (void)snprintf(row, sizeof(row), "| `%s` | %s | %s%s%s | %s |", setting->name,
                       *setting->value ? setting->value : "true, false",
                       *setting->standard ? "`" : "", setting->standard,
                       *setting->standard ? "`" : "", setting->help);
        if (strstr(docs, row))
            continue;
        print_error("docs/configuration.md lacks: %s\n", row);
        missing++;
    }
    assert_int_equal(missing, 0);
}

static void names_are_spelt_by_one_rule(void **state)
{
    char text[HD_CONFIG_MAX_NAME];

    (void)state;
    hd_setting_flag(hd_setting_find(HD_S("stream.end_event")), text);
    assert_string_equal(text, "--stream-end-event");
    hd_setting_variable(hd_setting_find(HD_S("stream.end_event")), text);
    assert_string_equal(text, "HEDDLE_STREAM_END_EVENT");
    hd_setting_flag(hd_setting_find(HD_S("graphs")), text);
    assert_string_equal(text, "--graph");
    assert_null(hd_setting_find(HD_S("stream")));
}

/* With authentication the default is strict. */
static void where_requests_may_go_follows(void **state)
{
    static const struct {
        const char *flag;
        bool has_users, is_strict;
    } table[] = {
        {"--outgoing-private=auto", false, false},
        {"--outgoing-private=auto", true, true},
        {"--outgoing-private=allow", true, false},
        {"--outgoing-private=deny", false, true},
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(table); i++) {
        const char *path = write_file(table[i].has_users ? "{\"auth\": {}}" : "{}");
        struct hd_config config = LOAD(.flags = {"--config", path, table[i].flag,
                                                 "--outgoing-allowed-hosts=a:80,10.0.0.0/8"});

        assert_int_equal(config.outgoing.is_strict, table[i].is_strict);
        assert_int_equal(config.outgoing.count, 2);
        assert_true(hd_outgoing_lists(&config.outgoing, HD_S("A"), 80));
        hd_config_fini(&config);
        assert_int_equal(unlink(path), 0);
    }
}

static void the_network_is_checked(void **state)
{
    static const struct {
        const char *flag, *says;
    } bad[] = {
        {"--trusted-proxies=127.0.0.1,name", "trusted_proxies: \"name\""},
        {"--trusted-proxies=10.0.0.1/8", "trusted_proxies: \"10.0.0.1/8\""},
        {"--outgoing-allowed-hosts=http://x", "outgoing.allowed_hosts: \"http://x\""},
        {"--tls-certificate=a.pem", "belong together"},
        {"--tls-key=a.pem", "belong together"},
    };
    struct hd_config config = LOAD(.flags = {"--trusted-proxies=127.0.0.1,10.0.0.0/8"});
    struct hd_ip ip;

    (void)state;
    assert_true(hd_ip_parse(HD_S("10.9.8.7"), &ip));
    assert_false(hd_net_has(&config.proxies[0], &ip));
    assert_true(hd_net_has(&config.proxies[1], &ip));
    hd_config_fini(&config);
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        struct given given = {.flags = {bad[i].flag}};
        struct heddle_error fault = {0};

        if (load(&config, &given, &fault) != HD_EINVAL || !strstr(fault.text, bad[i].says))
            fail_msg("%s: %s", bad[i].flag, fault.text);
    }
}

static int load_all(void *arg)
{
    struct hd_config config;
    struct heddle_error fault = {0};
    int err = load(&config, arg, &fault);

    if (err == 0)
        hd_config_fini(&config);
    return err;
}

static void a_cluster_needs_an_address_and_a_key(void **state)
{
    static const char key[] = "HEDDLE_CLUSTER_KEY=0123456789abcdef0123456789abcdef";
    static const char address[] = "--cluster-address=https://a.example:2024/agents";
    static const struct {
        const char *flag, *variable, *says;
    } bad[] = {
        {address, NULL, "cluster.key is not set"},
        {"--metrics", key, "cluster.address is not set"},
        {address, "HEDDLE_CLUSTER_KEY=0123456789abcdef", "HEDDLE_CLUSTER_KEY: too short"},
        {"--cluster-address=a.example:2024", key, "--cluster-address: not a URL"},
        {"--cluster-address=http://", key, "not a URL"},
        {"--cluster-address=http:///x", key, "not a URL"},
        {"--cluster-address=http://u@a", key, "not a URL"},
        {"--cluster-address=http://a?b", key, "not a URL"},
        {"--cluster-lease=1.9", NULL, "cluster.lease: less than 2 seconds"},
    };
    struct hd_config config = LOAD(.flags = {address, "--cluster-lease=2.5"}, .env = {key});

    (void)state;
    assert_string_equal(config.cluster_address, "https://a.example:2024/agents");
    assert_string_equal(config.cluster_key, key + sizeof("HEDDLE_CLUSTER_KEY=") - 1);
    assert_int_equal(config.cluster_lease_us, 2500000);
    hd_config_fini(&config);
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        struct given given = {.flags = {bad[i].flag}, .env = {bad[i].variable}};
        struct heddle_error fault = {0};

        assert_int_equal(load(&config, &given, &fault), HD_EINVAL);
        if (!strstr(fault.text, bad[i].says))
            fail_msg("%s", fault.text);
        assert_null(strstr(fault.text, "0123456789abcdef"));
    }
}

static void every_allocation_may_fail(void **state)
{
    const char *path =
        write_file("{\"graphs\": {\"a\": \"a.json\"}, \"webhooks\": {\"allowed_ports\": [1]}}");
    struct given given = {.flags = {"--config", path, "--store=memory:", "--graph=a=b"},
                          .env = {"HEDDLE_CORS_ALLOW_ORIGINS=a,b",
                                  "HEDDLE_OUTGOING_ALLOWED_HOSTS=a,b",
                                  "HEDDLE_TRUSTED_PROXIES=::1"}};

    (void)state;
    assert_true(check_every_allocation(load_all, &given) > 0);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given_means_the_defaults),
        cmocka_unit_test(flags_are_read),
        cmocka_unit_test(the_environment_is_read),
        cmocka_unit_test(the_file_is_read),
        cmocka_unit_test(a_flag_wins_over_the_environment_over_the_file),
        cmocka_unit_test(bad_flags_are_refused),
        cmocka_unit_test(bad_variables_are_refused),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(secrets_are_not_repeated),
        cmocka_unit_test(lists_have_a_limit),
        cmocka_unit_test(loopback_is_distinguished_from_other_hosts),
        cmocka_unit_test(objects_are_kept_as_they_are),
        cmocka_unit_test(files_may_have_comments),
        cmocka_unit_test(where_requests_may_go_follows),
        cmocka_unit_test(the_network_is_checked),
        cmocka_unit_test(help_has_every_option),
        cmocka_unit_test(docs_have_every_setting),
        cmocka_unit_test(names_are_spelt_by_one_rule),
        cmocka_unit_test(a_cluster_needs_an_address_and_a_key),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
