/*
 * Shared by the tests of the public API: the databases to run against, puts written in a line, and
 * results as text, so that an assertion shows the whole result.
 *
 * A checkpoint is rendered as
 *
 *   id<parent channel=type:bytes … | task/idx channel=type:bytes … ^ task/idx …
 *
 * with its values, then its writes, then its pending sends; parts that are empty are left out.
 * Bytes that are not printable are shown as \xNN.
 */
#ifndef HD_TESTS_CONTRACT_STORE_HELP_H
#define HD_TESTS_CONTRACT_STORE_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <heddle.h>

/* ---- databases ---- */

enum { MAX_URLS = 16 };

/* "memory:", "sqlite::memory:", "sqlite:" and the URLs in HEDDLE_TEST_URLS. */
size_t find_urls(const char *urls[MAX_URLS]);

/* A short name for a kind of URL, without passwords. */
const char *kind_of(const char *base);

/*
 * An unused database: a new file or a new schema. `extra` is appended as parameters (may be NULL).
 * The caller frees it, and the file with remove_database().
 */
char *fresh_url(const char *base, const char *extra);
void remove_database(const char *url);

/* True when two handles with this URL see the same data, and it survives closing. */
bool is_shared(const char *base);

/* ---- cases ---- */

struct fixture {
    const char *base;
    char *url;
    struct heddle *store;
};

struct store_case {
    const char *name;
    void (*run)(struct fixture *f);
};

#define STORE_CASE(function) \
    {                        \
#function, function  \
    }
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Runs every case on every kind of database, on a fresh one that must be whole afterwards. */
int run_cases(const char *group, const struct store_case *const *tables, size_t table_count,
              const char *extra);

struct heddle *open_store(const char *url);
/* Closes and opens again, where the data survives that. */
void reopen(struct fixture *f);

#define assert_ok(call) check_ok((call), #call, __FILE__, __LINE__)
void check_ok(int code, const char *call, const char *file, int line);

#define assert_code(call, expected) check_code((call), (expected), #call, __FILE__, __LINE__)
void check_code(int code, int expected, const char *call, const char *file, int line);

/* ---- writing ---- */

static inline struct heddle_bytes text(const char *s)
{
    return (struct heddle_bytes){s, s ? strlen(s) : 0};
}

static inline struct heddle_bytes bytes(const void *data, size_t len)
{
    return (struct heddle_bytes){data, len};
}

/* A string literal that may contain NUL. */
#define RAW(literal) ((struct heddle_bytes){(literal), sizeof(literal) - 1})

static inline struct heddle_thread thread_of(const char *id)
{
    return (struct heddle_thread){text(""), text(id)};
}

enum { MAX_VALUES = 8 };

#define VALUE(channel, data)                           \
    {                                                  \
        {(channel), sizeof(channel) - 1}, {"json", 4}, \
        {                                              \
            (data), sizeof(data) - 1                   \
        }                                              \
    }

/* Defaults of absent members: v 4, no metadata, every version is new. */
struct put {
    const char *principal;
    const char *thread;
    const char *ns;
    const char *id;
    const char *parent;
    const char *checkpoint; /* the whole JSON instead of one made from `versions` */
    const char *versions;
    const char *changed;
    const char *metadata;
    struct heddle_value values[MAX_VALUES]; /* up to the first without channel */
};

struct writes {
    const char *principal;
    const char *thread;
    const char *ns;
    const char *id;
    const char *task;
    const char *path;
    struct heddle_value values[MAX_VALUES];
};

/* A put as the API takes it; `json` has room for the checkpoint. */
enum { JSON_ROOM = 4096 };
struct heddle_checkpoint make_put(const struct put *put, char json[JSON_ROOM]);
struct heddle_writes make_writes(const struct writes *writes);

int try_put(struct heddle *store, const struct put *put, struct heddle_error *error);
int try_writes(struct heddle *store, const struct writes *writes, struct heddle_error *error);

#define PUT(store, ...) assert_ok(try_put(store, &(struct put){__VA_ARGS__}, NULL))
#define WRITES(store, ...) assert_ok(try_writes(store, &(struct writes){__VA_ARGS__}, NULL))

/* A JSON string of `len` characters, another for each seed. Freed by the caller. */
char *long_json(size_t len, unsigned seed);

/* ---- reading ---- */

/* All of them give memory that the caller frees. */
char *render_tuple(const struct heddle_tuple *tuple);
char *render_get(struct heddle *store, const char *thread, const char *ns, const char *id);
char *render_list(struct heddle *store, struct heddle_query query, int64_t limit);
char *render_history(struct heddle *store, const char *thread, const char *ns, const char *id,
                     const char *channel);
char *render_threads(struct heddle *store, const char *principal, const char *after, size_t limit);

#define assert_text(got, expected) check_text((got), (expected), __FILE__, __LINE__)
/* Frees `got`. */
void check_text(char *got, const char *expected, const char *file, int line);

#define assert_get(store, thread, ns, id, expected) \
    assert_text(render_get(store, thread, ns, id), expected)
#define assert_history(store, thread, id, channel, expected) \
    assert_text(render_history(store, thread, "", id, channel), expected)
/* All checkpoints of the principal ""; those that a query selects; at most `limit` of those. */
#define assert_list(store, expected) \
    assert_text(render_list(store, (struct heddle_query){0}, -1), expected)
#define assert_query(store, expected, ...) \
    assert_text(render_list(store, (struct heddle_query){__VA_ARGS__}, -1), expected)
#define assert_limited(store, limit, expected, ...) \
    assert_text(render_list(store, (struct heddle_query){__VA_ARGS__}, limit), expected)

struct heddle_tuple *must_get(struct heddle *store, const char *thread, const char *ns,
                              const char *id);
/* The value of a channel, or NULL. */
const struct heddle_value *value_of(const struct heddle_tuple *tuple, const char *channel);

struct heddle_usage usage_of(struct heddle *store, const char *thread);

#endif
