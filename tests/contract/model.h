/*
 * The simplest possible store: arrays with a place for every possible checkpoint and write. The
 * real store must return the same results.
 *
 * Everything is named by small numbers. Their order is the byte order of the names they stand for,
 * so a greater number is a later id.
 */
#ifndef HD_TESTS_CONTRACT_MODEL_H
#define HD_TESTS_CONTRACT_MODEL_H

#include "tests/contract/store_help.h"

enum {
    PRINCIPALS = 2,
    THREADS_EACH = 4,
    THREADS = PRINCIPALS * THREADS_EACH,
    NAMESPACES = 3,
    IDS = 20,
    TASKS = 4,
    PATHS = 3,
    RUNS = 4,
    CHANNELS = 6,
    SPECIALS = 4,
    WRITES_MAX = 5,
    ELEMENTS_MAX = 64,
    NONE = -1
};

/* Special channels, by number. */
enum { SENDS_CHANNEL = 1, DELTA_CHANNEL = 3, LIST_CHANNEL = 4 };

extern const struct heddle_bytes model_principals[PRINCIPALS];
extern const struct heddle_bytes model_threads[THREADS_EACH];
extern const struct heddle_bytes model_namespaces[NAMESPACES];
extern const struct heddle_bytes model_ids[IDS];
extern const struct heddle_bytes model_tasks[TASKS];
extern const struct heddle_bytes model_paths[PATHS];
extern const struct heddle_bytes model_runs[RUNS];
extern const struct heddle_bytes model_channels[CHANNELS];
extern const char *const model_channel_json[CHANNELS];     /* the same as JSON strings */
extern const struct heddle_bytes model_specials[SPECIALS]; /* __error__ first: idx -1, -2, … */

/* Every name must come after the one before it, or the model is nonsense. */
void check_names(void);

/* ---- values ---- */

/* A list of elements, each given by a seed and a length, and how it is written down. */
struct recipe {
    enum recipe_kind { JSON_LIST, HD1_LIST, MSGPACK_LIST, RAW_BYTES, RECIPE_KINDS } kind;
    unsigned count;
    uint32_t seeds[ELEMENTS_MAX];
    uint32_t lengths[ELEMENTS_MAX];
};

struct data {
    bool is_present;
    const char *type;
    char *bytes; /* owned */
    size_t len;
    struct recipe recipe;
};

/* Fills type, bytes and len from the recipe. */
void data_make(struct data *data);
void data_copy(struct data *to, const struct data *from);
void data_clear(struct data *data);

/* ---- contents ---- */

enum { VERSION_SIZE = 48 };

struct model_checkpoint {
    bool is_present;
    int parent; /* a number of an id, or NONE */
    int run;    /* or NONE */
    int v;
    unsigned deltas; /* bit c: channel c is in counters_since_delta_snapshot */
    unsigned mark;   /* anything, in the metadata, to filter by */
    char versions[CHANNELS][VERSION_SIZE]; /* JSON; empty: not named */
    struct data values[CHANNELS];
};

struct model_write {
    int path;
    int channel; /* CHANNELS + n: special channel n */
    struct data value;
};

struct model_place {
    struct model_checkpoint checkpoint;
    struct model_write writes[TASKS][SPECIALS + WRITES_MAX]; /* idx -4 is at 0 */
};

struct model {
    bool exists[THREADS]; /* is in the list of threads */
    struct model_place places[THREADS][NAMESPACES][IDS];
};

struct model *model_create(void);
void model_destroy(struct model *model);

struct model_put {
    int thread, ns, id;
    struct model_checkpoint checkpoint; /* versions and the rest; its values are ignored */
    bool is_changed[CHANNELS];          /* named in new_versions with the version it has */
    struct data values[CHANNELS];       /* handed in; of unchanged channels too, sometimes */
};

void model_put(struct model *model, const struct model_put *put);

struct model_batch {
    int thread, ns, id, task, path;
    int count;
    struct model_write writes[WRITES_MAX];
};

void model_put_writes(struct model *model, const struct model_batch *batch);
void model_delete_thread(struct model *model, int thread);
void model_delete_runs(struct model *model, int principal, unsigned runs);
int model_copy(struct model *model, int source, int target);
void model_keep_latest(struct model *model, int thread);
/* The latest in the namespace, or NONE. */
/* Of two ids of a namespace; one that is not there counts by its id alone. */
bool model_is_newer(const struct model *model, int thread, int ns, int a, int b);
/* NONE: not found. */
int model_latest(const struct model *model, int thread, int ns);

struct model_history {
    const struct data *seed; /* or NULL */
    int count;
    struct {
        int id, task, idx;
    } writes[IDS * TASKS * (SPECIALS + WRITES_MAX)];
};

void model_history(const struct model *model, int thread, int ns, int id, int channel,
                   struct model_history *out);

#endif
