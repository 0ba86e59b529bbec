/* Lists that grow: appending must write the same rows as putting the whole text, with any
 * operations between two puts. */
#include "store/list_append.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "store/codec/value.h"
#include "store/store.h"
#include "tests/unit/check.h"

static struct heddle_bytes bytes(const char *text)
{
    return (struct heddle_bytes){text, strlen(text)};
}

static struct heddle_bytes bytes_of(const struct hd_buf *buf)
{
    return (struct heddle_bytes){buf->ptr, buf->len};
}

/* ---- two stores, one put plainly and one by growth -------------------- */

enum { PLAIN, GROWN, BOTH };

struct pair {
    char paths[BOTH][256];
    struct heddle *stores[BOTH];
    struct hd_listing *listing;
    struct hd_buf text; /* the list, without its closing bracket */
    unsigned seed;
    int puts;
    char last[16]; /* id of the newest checkpoint */
};

static void open_stores(struct pair *pair)
{
    for (int i = 0; i < BOTH; i++) {
        char url[320];

        snprintf(url, sizeof(url), "sqlite:%s?durability=relaxed", pair->paths[i]);
        assert_err(heddle_open(&pair->stores[i], url, NULL), 0);
    }
}

static void close_stores(struct pair *pair)
{
    for (int i = 0; i < BOTH; i++)
        heddle_close(pair->stores[i]);
}

static void pair_init(struct pair *pair, unsigned seed)
{
    const char *tmp = getenv("TMPDIR");

    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < BOTH; i++)
        snprintf(pair->paths[i], sizeof(pair->paths[i]), "%s/growth-%d-%u-%d.db",
                 tmp ? tmp : "/tmp", (int)getpid(), seed, i);
    pair->seed = seed * 2654435761u + 1;
    pair->listing = hd_listing_create();
    assert_non_null(pair->listing);
    hd_buf_init(&pair->text, 1u << 30);
    assert_err(hd_buf_append_byte(&pair->text, '['), 0);
    open_stores(pair);
}

static void pair_fini(struct pair *pair)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char path[300];

    close_stores(pair);
    for (int i = 0; i < BOTH; i++) {
        for (size_t j = 0; j < HD_COUNT(suffixes); j++) {
            snprintf(path, sizeof(path), "%s%s", pair->paths[i], suffixes[j]);
            (void)remove(path);
        }
    }
    hd_listing_destroy(pair->listing);
    hd_buf_fini(&pair->text);
}

static unsigned any(struct pair *pair, unsigned below)
{
    pair->seed = pair->seed * 1664525u + 1013904223u;
    return (pair->seed >> 8) % below;
}

/* ---- lists ------------------------------------------------------------ */

static void add(struct pair *pair, struct hd_slice element)
{
    if (pair->text.len > 1)
        assert_err(hd_buf_append_byte(&pair->text, ','), 0);
    assert_err(hd_buf_append_slice(&pair->text, element), 0);
    assert_err(hd_listing_add(pair->listing, element), 0);
}

/* Numbers, short messages that are grouped, long ones, and now and then a huge one. */
static void add_any(struct pair *pair)
{
    static const unsigned lengths[] = {1, 10, 60, 250, 300, 2000, 5000};
    unsigned kind = any(pair, 60);
    unsigned len = kind == 0 ? 1300000 : 1 + any(pair, lengths[kind % HD_COUNT(lengths)]);
    struct hd_buf element;

    hd_buf_init(&element, 1u << 24);
    if (kind % 9 == 8) {
        assert_err(hd_buf_printf(&element, "%u", any(pair, 100)), 0);
    } else {
        assert_err(hd_buf_printf(&element, "{\"$\":\"message\",\"type\":\"human\",\"content\":\""),
                   0);
        for (unsigned i = 0; i < len; i++)
            assert_err(hd_buf_append_byte(&element, (uint8_t)('a' + any(pair, 26))), 0);
        assert_err(hd_buf_append_slice(&element, HD_S("\"}")), 0);
    }
    add(pair, hd_buf_slice(&element));
    hd_buf_fini(&element);
}

static void start_over(struct pair *pair)
{
    hd_listing_reset(pair->listing);
    pair->text.len = 1;
}

/* ---- puts ------------------------------------------------------------- */

static struct heddle_checkpoint checkpoint(const char *id, const char *parent, const char *row,
                                           const char *changed, const struct heddle_value *values,
                                           size_t count)
{
    return (struct heddle_checkpoint){.thread = {.id = bytes("t")},
                                      .id = bytes(id),
                                      .parent = bytes(parent),
                                      .checkpoint = bytes(row),
                                      .metadata = bytes("{}"),
                                      .new_versions = bytes(changed),
                                      .values = values,
                                      .value_count = count};
}

/* Puts the current list in both ways; the channel `other` keeps the value of the first put. */
static void put(struct pair *pair, const char *parent)
{
    struct hd_growth *growth;
    const struct hd_growth *growths[2] = {NULL, NULL};
    const struct hd_slice names[] = {HD_S("other"), HD_S("messages")};
    const bool has_changed[] = {pair->puts == 0, true};
    struct hd_outline outline = {
        .v = 4, .channels = names, .has_changed = has_changed, .channel_count = 2};
    struct hd_put_extras extras = {.growths = growths};
    char id[16], row[160], changed[96];
    struct heddle_value values[2] = {{bytes("other"), bytes("hd1"), bytes("[1,2,3]")},
                                     {bytes("messages"), bytes("hd1"), {NULL, 0}}};
    struct heddle_checkpoint cp;

    assert_err(hd_listing_grow(pair->listing, &growth), 0);
    snprintf(id, sizeof(id), "%06d", ++pair->puts);
    snprintf(row, sizeof(row), "{\"v\":4,\"channel_versions\":{\"other\":1,\"messages\":%d}}",
             pair->puts);
    snprintf(changed, sizeof(changed), "{%s\"messages\":%d}", pair->puts == 1 ? "\"other\":1," : "",
             pair->puts);
    cp = checkpoint(id, parent, row, changed, values, 2);
    assert_err(hd_buf_append_byte(&pair->text, ']'), 0);
    values[1].data = bytes_of(&pair->text);
    assert_err(heddle_put(pair->stores[PLAIN], &cp, NULL), 0);
    pair->text.len--;
    values[1].data = (struct heddle_bytes){NULL, growth->size};
    growths[1] = growth;
    /* With an outline instead of JSON, if its parent is the expected one. */
    if (strcmp(parent, pair->last) == 0 && pair->puts % 2)
        extras.outline = &outline;
    assert_err(hd_store_put(pair->stores[GROWN], &cp, &extras, NULL), 0);
    hd_growth_destroy(growth);
    snprintf(pair->last, sizeof(pair->last), "%s", id);
}

/* Writes a value as a task does before the list has it: the same chunk as the list's, or
 * another. */
static void put_write(struct pair *pair, struct hd_slice data)
{
    struct heddle_value value = {bytes("messages"), bytes("hd1"), {data.ptr, data.len}};
    struct heddle_writes writes = {.thread = {.id = bytes("t")},
                                   .checkpoint_id = bytes(pair->last),
                                   .task_id = bytes("task"),
                                   .values = &value,
                                   .value_count = 1};

    for (int i = 0; i < BOTH; i++)
        assert_err(heddle_put_writes(pair->stores[i], &writes, NULL), 0);
}

/* ---- comparing -------------------------------------------------------- */

static int dump_row(void *arg, size_t which, const struct hd_cell *cells)
{
    static const enum hd_table_id tables[] = {HD_CHECKPOINTS, HD_CHUNKS, HD_WRITES};
    const struct hd_table *table = &hd_tables[tables[which]];
    struct hd_buf *out = arg;
    int err = hd_buf_printf(out, "%s", table->name);

    for (unsigned i = 0; !err && i < table->column_count; i++)
        err = cells[i].kind == HD_CELL_BYTES
                  ? hd_buf_append_lenslice(out, cells[i].bytes)
                  : hd_buf_printf(out, " %lld ", (long long)cells[i].number);
    return err;
}

/* All rows but the thread's own, which has times and a random number. */
static void dump(struct heddle *store, struct hd_buf *out)
{
    struct hd_backend *backend = ((struct hd_store *)store)->backend;
    struct hd_cell thread = hd_cell_bytes(HD_S(":t"));
    struct hd_query queries[3] = {
        {.table = HD_CHECKPOINTS}, {.table = HD_CHUNKS}, {.table = HD_WRITES}};

    for (size_t i = 0; i < 3; i++) {
        queries[i].index = HD_PRIMARY;
        queries[i].prefix = &thread;
        queries[i].prefix_count = 1;
        queries[i].columns = HD_ALL_COLUMNS;
    }
    hd_buf_init(out, 1u << 30);
    assert_err(hd_backend_read(backend, queries, 3, dump_row, out, NULL), 0);
}

static void assert_same_rows(struct pair *pair)
{
    struct hd_buf rows[BOTH];

    for (int i = 0; i < BOTH; i++)
        dump(pair->stores[i], &rows[i]);
    assert_int_equal(rows[PLAIN].len, rows[GROWN].len);
    assert_memory_equal(rows[PLAIN].ptr, rows[GROWN].ptr, rows[PLAIN].len);
    for (int i = 0; i < BOTH; i++)
        hd_buf_fini(&rows[i]);
}

static void assert_reads_back(struct pair *pair, const char *id)
{
    struct heddle_key key = {.thread = {.id = bytes("t")}, .id = bytes(id)};
    struct heddle_tuple *tuple;

    assert_err(heddle_get(pair->stores[GROWN], &key, &tuple, NULL), 0);
    assert_int_equal(tuple->value_count, 2);
    assert_err(hd_buf_append_byte(&pair->text, ']'), 0);
    assert_int_equal(tuple->values[0].data.len, pair->text.len);
    assert_memory_equal(tuple->values[0].data.data, pair->text.ptr, pair->text.len);
    pair->text.len--;
    heddle_tuple_free(tuple);
}

/* ---- cases ------------------------------------------------------------ */

static void a_list_from_nothing(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, 1);
    put(&pair, "");
    assert_reads_back(&pair, pair.last);
    for (int i = 0; i < 40; i++) {
        add(&pair, HD_S("{\"$\":\"message\",\"type\":\"human\",\"content\":\"hello\"}"));
        put(&pair, pair.last);
        assert_same_rows(&pair);
        assert_reads_back(&pair, pair.last);
        put(&pair, pair.last); /* nothing was added */
        assert_same_rows(&pair);
    }
    pair_fini(&pair);
}

/* Continues as if the list had been loaded from the stored value. */
static void reload(struct pair *pair)
{
    uint64_t size, checksum;

    if (pair->text.len == 1) {
        assert_err(hd_listing_read(pair->listing, HD_S("[]")), HD_EINVAL);
        assert_false(hd_listing_is(pair->listing, &size, &checksum));
        return;
    }
    assert_err(hd_buf_append_byte(&pair->text, ']'), 0);
    assert_err(hd_listing_read(pair->listing, hd_buf_slice(&pair->text)), 0);
    assert_true(hd_listing_is(pair->listing, &size, &checksum));
    assert_int_equal(size, pair->text.len);
    assert_int_equal(checksum, hd_value_checksum(hd_buf_slice(&pair->text)));
    pair->text.len--;
}

static void step(struct pair *pair)
{
    char parent[16];
    struct hd_growth *lost;
    size_t before = pair->text.len;

    for (unsigned n = any(pair, 4); n > 0; n--)
        add_any(pair);
    if (pair->puts > 0 && any(pair, 3) == 0 && pair->text.len > before + 1)
        put_write(pair, any(pair, 4) ? hd_slice(pair->text.ptr + before + (before > 1),
                                                pair->text.len - before - (before > 1))
                                     : HD_S("\"another one\""));
    snprintf(parent, sizeof(parent), "%s", pair->last);
    switch (any(pair, 30)) {
    case 0: /* a fork: the parent has another list */
    case 1:
        snprintf(parent, sizeof(parent), "%06u",
                 pair->puts ? 1 + any(pair, (unsigned)pair->puts) : 0);
        break;
    case 2: /* a growth that is never put */
        assert_err(hd_listing_grow(pair->listing, &lost), 0);
        hd_growth_destroy(lost);
        break;
    case 3:
        close_stores(pair);
        open_stores(pair);
        break;
    case 4:
        start_over(pair);
        break;
    case 5:
        for (int i = 0; i < BOTH; i++)
            if (pair->puts > 0)
                assert_err(heddle_prune(pair->stores[i], &(struct heddle_thread){.id = bytes("t")},
                                        1, HEDDLE_KEEP_LATEST, NULL),
                           0);
        break;
    default:
        break;
    }
    put(pair, parent);
    if (any(pair, 5) == 0)
        reload(pair);
}

static void rows_equal_those_of_the_whole_text(void **state)
{
    (void)state;
    for (unsigned seed = 10; seed < 22; seed++) {
        struct pair pair;

        pair_init(&pair, seed);
        for (int i = 0; i < 60; i++) {
            step(&pair);
            assert_reads_back(&pair, pair.last);
            if (i % 5 == 0)
                assert_same_rows(&pair);
        }
        assert_same_rows(&pair);
        pair_fini(&pair);
    }
}

/* Overwrites the text of the elements put before: reading them again would store wrong rows. */
static void stored_elements_are_not_read_again(void **state)
{
    struct hd_growth *growth;
    struct pair pair;
    size_t len;

    (void)state;
    pair_init(&pair, 2);
    for (int i = 0; i < 500; i++)
        add(&pair, HD_S("{\"$\":\"message\",\"type\":\"human\",\"content\":\"the same as ever\"}"));
    put(&pair, "");
    len = pair.text.len - 5000; /* more than a group */
    assert_err(hd_listing_grow(pair.listing, &growth), 0);
    memset((char *)growth->text + 2 * sizeof(size_t), 'x', len);
    hd_growth_destroy(growth);
    for (int i = 0; i < 300; i++) {
        char element[64];

        snprintf(element, sizeof(element), "{\"number\":%d}", i);
        add(&pair, hd_slice_cstr(element));
        put(&pair, pair.last);
    }
    assert_same_rows(&pair);
    assert_reads_back(&pair, pair.last);
    pair_fini(&pair);
}

/* A loaded list is continued: its text is not cut and looked up again. */
static void a_loaded_list_continues(void **state)
{
    struct hd_growth *growth;
    struct pair pair;

    (void)state;
    pair_init(&pair, 5);
    for (int i = 0; i < 300; i++)
        add_any(&pair);
    put(&pair, "");
    reload(&pair);
    add(&pair, HD_S("{\"one\":\"more\"}"));
    put(&pair, pair.last);
    assert_same_rows(&pair);
    reload(&pair);
    add(&pair, HD_S("{\"and\":\"one\"}"));
    assert_err(hd_listing_grow(pair.listing, &growth), 0);
    assert_true(growth->has_base);
    assert_true(growth->pieces.count < 5);
    hd_growth_destroy(growth);
    pair_fini(&pair);
}

static void only_compact_lists_are_read(void **state)
{
    static const char *const bad[] = {
        "",      "[",    "[]",     "1",      "{}",           "[1",   "1]",
        "[ 1]",  "[1 ]", "[1 ,2]", "[1, 2]", "[,]",          "[1,]", "[1,,2]",
        "[\"a]", "[{]",  "[[1]",   "[1 2]",  "[\"a\"\"b\"]",
    };
    struct hd_listing *listing = hd_listing_create();
    struct hd_growth *growth;
    uint64_t size, checksum;
    char text[4];

    (void)state;
    assert_non_null(listing);
    for (size_t i = 0; i < HD_COUNT(bad); i++) {
        assert_err(hd_listing_read(listing, HD_S("[1,2]")), 0);
        assert_err(hd_listing_read(listing, hd_slice_cstr(bad[i])), HD_EINVAL);
        assert_false(hd_listing_is(listing, &size, &checksum));
        assert_err(hd_listing_add(listing, HD_S("7")), 0); /* the listing is empty */
        assert_err(hd_listing_grow(listing, &growth), 0);
        assert_int_equal(growth->size, 3);
        hd_growth_write(growth, text);
        assert_memory_equal(text, "[7]", 3);
        hd_growth_destroy(growth);
    }
    hd_listing_destroy(listing);
}

/* Reads the newest checkpoint with one known value. */
static struct heddle_tuple *get_unknown(struct pair *pair, const char *channel, const char *type,
                                        uint64_t size, uint64_t checksum)
{
    struct hd_known known[2] = {{bytes("unheard"), bytes("hd1"), 7, 7},
                                {bytes(channel), bytes(type), size, checksum}};
    struct heddle_key key = {.thread = {.id = bytes("t")}};
    struct heddle_tuple *tuple;

    assert_err(hd_store_get_unknown(pair->stores[GROWN], &key, known, 2, &tuple, NULL), 0);
    assert_int_equal(tuple->value_count, 2);
    assert_int_equal(tuple->values[0].data.len, size); /* messages sorts before other */
    assert_memory_equal(tuple->values[1].data.data, "[1,2,3]", 7);
    return tuple;
}

static void known_values_are_not_read(void **state)
{
    struct heddle_tuple *tuple;
    uint64_t size, checksum;
    struct pair pair;

    (void)state;
    pair_init(&pair, 6);
    for (int i = 0; i < 100; i++)
        add_any(&pair);
    put(&pair, "");
    assert_true(hd_listing_is(pair.listing, &size, &checksum));
    tuple = get_unknown(&pair, "messages", "hd1", size, checksum);
    assert_null(tuple->values[0].data.data);
    heddle_tuple_free(tuple);
    tuple = get_unknown(&pair, "messages", "hd1", size, checksum + 1);
    assert_memory_equal(tuple->values[0].data.data, pair.text.ptr, size - 1);
    heddle_tuple_free(tuple);
    tuple = get_unknown(&pair, "messages", "json", size, checksum);
    assert_non_null(tuple->values[0].data.data);
    heddle_tuple_free(tuple);
    tuple = get_unknown(&pair, "other", "hd1", size, checksum);
    assert_non_null(tuple->values[0].data.data);
    heddle_tuple_free(tuple);
    pair_fini(&pair);
}

/* The parent has another list of the same size. */
static void size_alone_does_not_make_a_base(void **state)
{
    struct hd_growth *lost;
    struct pair pair;

    (void)state;
    pair_init(&pair, 4);
    for (int i = 0; i < 100; i++)
        add(&pair, HD_S("{\"content\":\"one text of some length, and another\"}"));
    put(&pair, "");
    start_over(&pair);
    for (int i = 0; i < 100; i++)
        add(&pair, HD_S("{\"content\":\"two text of some length, and another\"}"));
    assert_err(hd_listing_grow(pair.listing, &lost), 0);
    hd_growth_destroy(lost);
    add(&pair, HD_S("3"));
    put(&pair, pair.last);
    assert_same_rows(&pair);
    assert_reads_back(&pair, pair.last);
    pair_fini(&pair);
}

/* ---- asynchronous puts ------------------------------------------------ */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int left;
    int errors;
};

static void on_done(void *arg, int code, const struct heddle_error *error)
{
    struct waiter *waiter = arg;

    (void)error;
    pthread_mutex_lock(&waiter->lock);
    waiter->left--;
    waiter->errors += code != 0;
    pthread_cond_signal(&waiter->changed);
    pthread_mutex_unlock(&waiter->lock);
}

struct queued {
    char id[16], parent[16], row[96], changed[32];
    struct heddle_value value;
    struct hd_growth *growth;
    const struct hd_growth *growths[1];
    struct hd_put_extras extras;
    struct heddle_checkpoint cp;
};

static void queue_put(struct pair *pair, struct queued *q, int number, struct waiter *waiter)
{
    assert_err(hd_listing_grow(pair->listing, &q->growth), 0);
    q->growths[0] = q->growth;
    snprintf(q->id, sizeof(q->id), "%06d", number);
    snprintf(q->parent, sizeof(q->parent), "%06d", number - 1);
    snprintf(q->row, sizeof(q->row), "{\"v\":4,\"channel_versions\":{\"messages\":%d}}", number);
    snprintf(q->changed, sizeof(q->changed), "{\"messages\":%d}", number);
    q->value = (struct heddle_value){bytes("messages"), bytes("hd1"), {NULL, q->growth->size}};
    q->cp = checkpoint(q->id, number > 1 ? q->parent : "", q->row, q->changed, &q->value, 1);
    q->extras = (struct hd_put_extras){.growths = q->growths};
    assert_err(hd_store_queue_put(pair->stores[GROWN], &q->cp, &q->extras, on_done, waiter, NULL),
               0);
    if (number % 3 == 0)
        hd_store_queue_go(pair->stores[GROWN]);
}

static void the_list_may_grow_while_it_is_put(void **state)
{
    static struct queued queued[200];
    struct waiter waiter = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct heddle_key key = {.thread = {.id = bytes("t")}};
    struct heddle_tuple *tuple;
    struct pair pair;

    (void)state;
    pair_init(&pair, 3);
    waiter.left = (int)HD_COUNT(queued);
    for (size_t i = 0; i < HD_COUNT(queued); i++) {
        char element[64];

        snprintf(element, sizeof(element), "{\"number\":%zu,\"and\":\"more\"}", i);
        add(&pair, hd_slice_cstr(element));
        queue_put(&pair, &queued[i], (int)i + 1, &waiter);
    }
    hd_store_queue_go(pair.stores[GROWN]);
    pthread_mutex_lock(&waiter.lock);
    while (waiter.left > 0)
        pthread_cond_wait(&waiter.changed, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    assert_int_equal(waiter.errors, 0);
    for (size_t i = 0; i < HD_COUNT(queued); i++)
        hd_growth_destroy(queued[i].growth);
    assert_err(heddle_get(pair.stores[GROWN], &key, &tuple, NULL), 0);
    assert_slice(hd_slice(tuple->values[0].data.data, tuple->values[0].data.len - 1),
                 hd_buf_slice(&pair.text));
    heddle_tuple_free(tuple);
    pair_fini(&pair);
}

/* ---- no memory -------------------------------------------------------- */

static int grow(struct hd_listing *listing, struct hd_growth **out)
{
    int err = 0;

    for (int i = 0; !err && i < 40; i++)
        err = hd_listing_add(listing, HD_S("{\"content\":\"some text to fill a group\"}"));
    return err ? err : hd_listing_grow(listing, out);
}

static int only_grow(void *arg)
{
    struct hd_listing *listing = hd_listing_create();
    struct hd_growth *first = NULL, *second = NULL;
    int err = listing ? grow(listing, &first) : HD_ENOMEM;

    (void)arg;
    if (!err)
        err = grow(listing, &second);
    if (!err)
        err = hd_listing_read(listing, HD_S("[{\"content\":\"some text\"},{\"a\":1}]"));
    hd_growth_destroy(first);
    hd_growth_destroy(second);
    hd_listing_destroy(listing);
    return err;
}

/* Puts `count` growths; the parent of the third and later ones does not have their base. */
static int grow_and_put(struct heddle *store, int count)
{
    struct hd_listing *listing = hd_listing_create();
    char id[2] = "0", parent[2] = "";
    int err = listing ? 0 : HD_ENOMEM;

    for (int i = 0; !err && i < count; i++) {
        struct heddle_value value = {bytes("messages"), bytes("hd1"), {NULL, 0}};
        struct heddle_checkpoint cp;
        struct hd_growth *growth = NULL;
        const struct hd_growth *growths[1];

        id[0]++;
        cp = checkpoint(id, parent, "{\"v\":4,\"channel_versions\":{\"messages\":1}}",
                        "{\"messages\":1}", &value, 1);
        err = grow(listing, &growth);
        if (!err) {
            value.data.len = growth->size;
            growths[0] = growth;
            err = hd_store_put(store, &cp, &(struct hd_put_extras){.growths = growths}, NULL);
        }
        hd_growth_destroy(growth);
        parent[0] = '1';
    }
    hd_listing_destroy(listing);
    return err;
}

/* The store may recover, or return the error. The stored data is correct in both cases. */
static void every_allocation_may_fail(void **state)
{
    struct heddle_key key = {.thread = {.id = bytes("t")}};
    struct heddle_tuple *tuple;
    long asked, failures = 0;

    (void)state;
    assert_true(check_every_allocation(only_grow, NULL) > 5);
    for (long n = 1;; n++) {
        struct heddle *store;
        int err;

        assert_err(heddle_open(&store, "memory:", NULL), 0);
        (void)hd_alloc_fail_at(n, n % 2 == 0);
        err = grow_and_put(store, 4);
        asked = hd_alloc_fail_at(0, 0);
        assert_true(err == 0 || err == HD_ENOMEM);
        failures += err != 0;
        assert_err(grow_and_put(store, 4), 0);
        assert_err(heddle_get(store, &key, &tuple, NULL), 0);
        assert_int_equal(tuple->values[0].data.len, 4 * 40 * 40 + 1);
        heddle_tuple_free(tuple);
        heddle_close(store);
        if (asked < n)
            break;
    }
    assert_true(failures > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_from_nothing),
        cmocka_unit_test(rows_equal_those_of_the_whole_text),
        cmocka_unit_test(stored_elements_are_not_read_again),
        cmocka_unit_test(a_loaded_list_continues),
        cmocka_unit_test(only_compact_lists_are_read),
        cmocka_unit_test(known_values_are_not_read),
        cmocka_unit_test(size_alone_does_not_make_a_base),
        cmocka_unit_test(the_list_may_grow_while_it_is_put),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
