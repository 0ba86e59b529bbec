#include "tests/contract/store_help.h"

#include <stdio.h>
#include <unistd.h>

/* ---- databases ---- */

size_t find_urls(const char *urls[MAX_URLS])
{
    const char *only = getenv("HEDDLE_TEST_ONLY"); /* such as "sqlite:", to look into one */
    const char *list = getenv("HEDDLE_TEST_URLS");
    char *copy = list ? strdup(list) : NULL, *rest = copy;
    const char *url;
    size_t count = 0;

    if (only) {
        urls[0] = only;
        free(copy);
        return 1;
    }
    urls[count++] = "memory:";
    urls[count++] = "sqlite::memory:";
    urls[count++] = "sqlite:";
    /* The copy stays: the URLs are parts of it. */
    while (rest && (url = strsep(&rest, " ")) != NULL && count < MAX_URLS) {
        if (*url)
            urls[count++] = url;
    }
    return count;
}

const char *kind_of(const char *base)
{
    if (strcmp(base, "sqlite:") == 0 || strncmp(base, "sqlite::", 8) == 0)
        return base;
    if (strncmp(base, "postgres", 8) == 0)
        return strstr(base, "pooled") ? "pgbouncer:" : "postgresql:";
    return base;
}

bool is_shared(const char *base)
{
    return strcmp(base, "memory:") != 0 && strcmp(base, "sqlite::memory:") != 0;
}

static char *with_parameter(const char *url, const char *parameter)
{
    char *out = NULL;

    if (asprintf(&out, "%s%c%s", url, strchr(url, '?') ? '&' : '?', parameter) < 0)
        fail();
    return out;
}

/* The URL without its schema=, if it names one. */
static char *without_schema(const char *url)
{
    char *copy = strdup(url);
    char *at;

    assert_non_null(copy);
    at = strstr(copy, "schema=");
    if (at) {
        size_t len = strcspn(at, "&");

        if (at[len] == '&')
            memmove(at, at + len + 1, strlen(at + len + 1) + 1);
        else
            at[-1] = '\0';
    }
    return copy;
}

char *fresh_url(const char *base, const char *extra)
{
    static unsigned number;
    const char *tmp = getenv("TMPDIR");
    char *url = NULL, *whole;

    number++;
    if (strcmp(base, "sqlite:") == 0) {
        if (asprintf(&url, "sqlite:%s/heddle-store-%d-%u.db", tmp ? tmp : "/tmp", (int)getpid(),
                     number) < 0)
            fail();
    } else if (strncmp(base, "postgres", 8) == 0) {
        char *plain = without_schema(base), schema[64];

        snprintf(schema, sizeof(schema), "schema=s%d_%u", (int)getpid(), number);
        url = with_parameter(plain, schema);
        free(plain);
    } else {
        url = strdup(base);
    }
    if (!extra)
        return url;
    whole = with_parameter(url, extra);
    free(url);
    return whole;
}

void remove_database(const char *url)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    if (strncmp(url, "sqlite:/", 8) != 0)
        return;
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        char path[512];

        snprintf(path, sizeof(path), "%.*s%s", (int)strcspn(url + 7, "?"), url + 7, ends[i]);
        unlink(path);
    }
}

/* ---- cases ---- */

struct heddle *open_store(const char *url)
{
    struct heddle_error error = {0};
    struct heddle *store = NULL;

    if (heddle_open(&store, url, &error) != 0)
        fail_msg("%s: %s", kind_of(url), error.text);
    return store;
}

void reopen(struct fixture *f)
{
    if (!is_shared(f->base))
        return;
    heddle_close(f->store);
    f->store = open_store(f->url);
}

struct named_run {
    const struct store_case *test;
    const char *base;
    const char *extra;
};

static void run_case(void **state)
{
    const struct named_run *run = *state;
    struct fixture f = {.base = run->base, .url = fresh_url(run->base, run->extra)};
    struct heddle_error error = {0};

    f.store = open_store(f.url);
    run->test->run(&f);
    if (heddle_check(f.store, &error) != 0)
        fail_msg("check: %s", error.text);
    heddle_close(f.store);
    remove_database(f.url);
    free(f.url);
}

int run_cases(const char *group, const struct store_case *const *tables, size_t table_count,
              const char *extra)
{
    enum { MAX_RUNS = 4000 };
    static struct CMUnitTest tests[MAX_RUNS];
    static struct named_run runs[MAX_RUNS];
    static char names[MAX_RUNS][160];
    const char *urls[MAX_URLS];
    size_t url_count = find_urls(urls), count = 0;

    for (size_t u = 0; u < url_count; u++) {
        for (size_t t = 0; t < table_count; t++) {
            for (const struct store_case *c = tables[t]; c->name && count < MAX_RUNS;
                 c++, count++) {
                runs[count] = (struct named_run){c, urls[u], extra};
                snprintf(names[count], sizeof(names[count]), "%s %s", kind_of(urls[u]), c->name);
                tests[count] =
                    (struct CMUnitTest){names[count], run_case, NULL, NULL, &runs[count]};
            }
        }
    }
    if (getenv("HEDDLE_TEST_FILTER"))
        cmocka_set_test_filter(getenv("HEDDLE_TEST_FILTER"));
    /* The macro takes the size of an array, and only the first `count` of this one are tests. */
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

void check_ok(int code, const char *call, const char *file, int line)
{
    check_code(code, 0, call, file, line);
}

void check_code(int code, int expected, const char *call, const char *file, int line)
{
    if (code == expected)
        return;
    print_error("%s\n  is %d (%s), not %d (%s)\n", call, code, heddle_error_text(code), expected,
                heddle_error_text(expected));
    _fail(file, line);
}

void check_text(char *got, const char *expected, const char *file, int line)
{
    if (strcmp(got, expected) != 0) {
        print_error("got:      %s\nexpected: %s\n", got, expected);
        free(got);
        _fail(file, line);
    }
    free(got);
}

/* ---- writing ---- */

static size_t count_values(const struct heddle_value *values)
{
    size_t count = 0;

    while (count < MAX_VALUES && values[count].channel.data)
        count++;
    return count;
}

struct heddle_checkpoint make_put(const struct put *put, char json[JSON_ROOM])
{
    const char *versions = put->versions ? put->versions : "{}";

    snprintf(json, JSON_ROOM, "{\"v\":4,\"id\":\"%s\",\"channel_versions\":%s}", put->id, versions);
    return (struct heddle_checkpoint){
        .thread = {text(put->principal), text(put->thread)},
        .ns = text(put->ns),
        .id = text(put->id),
        .parent = text(put->parent),
        .checkpoint = text(put->checkpoint ? put->checkpoint : json),
        .metadata = text(put->metadata ? put->metadata : "{}"),
        .new_versions = text(put->changed ? put->changed : versions),
        .values = put->values,
        .value_count = count_values(put->values),
    };
}

struct heddle_writes make_writes(const struct writes *writes)
{
    return (struct heddle_writes){
        .thread = {text(writes->principal), text(writes->thread)},
        .ns = text(writes->ns),
        .checkpoint_id = text(writes->id),
        .task_id = text(writes->task),
        .task_path = text(writes->path),
        .values = writes->values,
        .value_count = count_values(writes->values),
    };
}

int try_put(struct heddle *store, const struct put *put, struct heddle_error *error)
{
    char json[JSON_ROOM];
    struct heddle_checkpoint checkpoint = make_put(put, json);

    return heddle_put(store, &checkpoint, error);
}

int try_writes(struct heddle *store, const struct writes *writes, struct heddle_error *error)
{
    struct heddle_writes batch = make_writes(writes);

    return heddle_put_writes(store, &batch, error);
}

char *long_json(size_t len, unsigned seed)
{
    char *json = malloc(len + 1);
    uint64_t x = seed * 2654435761u + 1;

    assert_non_null(json);
    assert_true(len >= 2);
    for (size_t i = 1; i + 1 < len; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        json[i] = (char)('a' + (x >> 33) % 26);
    }
    json[0] = json[len - 1] = '"';
    json[len] = '\0';
    return json;
}

/* ---- reading ---- */

static void render_bytes(FILE *out, struct heddle_bytes b)
{
    for (size_t i = 0; i < b.len; i++) {
        unsigned char c = ((const unsigned char *)b.data)[i];

        if (c >= ' ' && c < 127)
            fputc(c, out);
        else
            fprintf(out, "\\x%02x", c);
    }
}

static void render_value(FILE *out, const struct heddle_value *value)
{
    fputc(' ', out);
    render_bytes(out, value->channel);
    fputc('=', out);
    render_bytes(out, value->type);
    fputc(':', out);
    render_bytes(out, value->data);
}

static void render_writes(FILE *out, const struct heddle_write *writes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputc(' ', out);
        render_bytes(out, writes[i].task_id);
        fprintf(out, "/%lld", (long long)writes[i].idx);
        if (writes[i].task_path.len) {
            fputc('@', out);
            render_bytes(out, writes[i].task_path);
        }
        render_value(out, &writes[i].value);
    }
}

static FILE *start(char **buffer, size_t *size)
{
    FILE *out = open_memstream(buffer, size);

    assert_non_null(out);
    return out;
}

static void put_tuple(FILE *out, const struct heddle_tuple *tuple)
{
    render_bytes(out, tuple->id);
    fputc('<', out);
    render_bytes(out, tuple->parent);
    for (size_t i = 0; i < tuple->value_count; i++)
        render_value(out, &tuple->values[i]);
    if (tuple->write_count)
        fputs(" |", out);
    render_writes(out, tuple->writes, tuple->write_count);
    if (tuple->send_count)
        fputs(" ^", out);
    render_writes(out, tuple->sends, tuple->send_count);
}

char *render_tuple(const struct heddle_tuple *tuple)
{
    char *buffer;
    size_t size;
    FILE *out = start(&buffer, &size);

    put_tuple(out, tuple);
    fclose(out);
    return buffer;
}

char *render_get(struct heddle *store, const char *thread, const char *ns, const char *id)
{
    struct heddle_key key = {thread_of(thread), text(ns), text(id)};
    struct heddle_tuple *tuple;
    struct heddle_error error = {0};
    int code = heddle_get(store, &key, &tuple, &error);
    char *rendered;

    if (code) {
        assert_int_equal(error.code, code);
        return strdup(code == HEDDLE_ENOTFOUND ? "none" : error.text);
    }
    rendered = render_tuple(tuple);
    heddle_tuple_free(tuple);
    return rendered;
}

char *render_list(struct heddle *store, struct heddle_query query, int64_t limit)
{
    struct heddle_error error = {0};
    struct heddle_list *list;
    const struct heddle_tuple *tuple;
    char *buffer;
    size_t size;
    FILE *out = start(&buffer, &size);
    int code;

    query.limit = limit;
    code = heddle_list_open(store, &query, &list, &error);
    if (code) {
        fprintf(out, "%s", error.text);
        fclose(out);
        return buffer;
    }
    for (int i = 0; (code = heddle_list_next(list, &tuple, &error)) == 0; i++) {
        fputs(i ? " " : "", out);
        render_bytes(out, tuple->thread.id);
        fputc('/', out);
        render_bytes(out, tuple->ns);
        fputc('/', out);
        render_bytes(out, tuple->id);
    }
    if (code != HEDDLE_ENOTFOUND)
        fprintf(out, " %s", error.text);
    heddle_list_close(list);
    fclose(out);
    return buffer;
}

char *render_history(struct heddle *store, const char *thread, const char *ns, const char *id,
                     const char *channel)
{
    struct heddle_key key = {thread_of(thread), text(ns), text(id)};
    struct heddle_bytes name = text(channel);
    struct heddle_histories *histories;
    struct heddle_error error = {0};
    char *buffer;
    size_t size;
    FILE *out = start(&buffer, &size);

    if (heddle_delta_history(store, &key, &name, 1, &histories, &error) != 0) {
        fprintf(out, "%s", error.text);
        fclose(out);
        return buffer;
    }
    assert_int_equal(histories->channel_count, 1);
    if (histories->channels[0].seed)
        render_value(out, histories->channels[0].seed);
    fputs(" |", out);
    render_writes(out, histories->channels[0].writes, histories->channels[0].write_count);
    heddle_histories_free(histories);
    fclose(out);
    return buffer;
}

char *render_threads(struct heddle *store, const char *principal, const char *after, size_t limit)
{
    struct heddle_threads *threads;
    struct heddle_error error = {0};
    char *buffer;
    size_t size;
    FILE *out = start(&buffer, &size);
    int code = heddle_list_threads(store, text(principal), text(after), limit, &threads, &error);

    if (code) {
        fprintf(out, "%s", error.text);
        fclose(out);
        return buffer;
    }
    for (size_t i = 0; i < threads->count; i++) {
        fputs(i ? " " : "", out);
        render_bytes(out, threads->threads[i].thread.id);
    }
    heddle_threads_free(threads);
    fclose(out);
    return buffer;
}

struct heddle_tuple *must_get(struct heddle *store, const char *thread, const char *ns,
                              const char *id)
{
    struct heddle_key key = {thread_of(thread), text(ns), text(id)};
    struct heddle_tuple *tuple = NULL;
    struct heddle_error error = {0};

    if (heddle_get(store, &key, &tuple, &error) != 0)
        fail_msg("get %s/%s/%s: %s", thread, ns, id, error.text);
    return tuple;
}

const struct heddle_value *value_of(const struct heddle_tuple *tuple, const char *channel)
{
    for (size_t i = 0; i < tuple->value_count; i++) {
        if (tuple->values[i].channel.len == strlen(channel) &&
            memcmp(tuple->values[i].channel.data, channel, strlen(channel)) == 0)
            return &tuple->values[i];
    }
    return NULL;
}

struct heddle_usage usage_of(struct heddle *store, const char *thread)
{
    struct heddle_thread t = thread_of(thread);
    struct heddle_usage usage;

    assert_ok(heddle_thread_usage(store, &t, &usage, NULL));
    return usage;
}
