/*
 * Shared by the fault tests: a seeded sequence of operations, and a trivial model of their effects.
 *
 * A *worker* has a few conversations that only it writes to, and its share of one thread that all
 * workers write to (distinguished by the first letter of the checkpoint's id). Its operations are a
 * function of its seed, its count and its model, so that a process and its supervisor agree on
 * operation n without communication.
 *
 * Dumps are text, one line for each thing, values by length and hash. The dump of a conversation in
 * the store must equal that of the model.
 */
#ifndef HD_TESTS_FAULT_MODEL_H
#define HD_TESTS_FAULT_MODEL_H

#include <heddle.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    CHANNELS = 4,
    CONVS = 5,
    SHARED = 4, /* the conversation that all workers write to */
    NOTES_MAX = 4,
    SPECIAL = CHANNELS /* the channel number of __interrupt__ */
};

/* Immutable and counted: conversations that were copied share them. One worker's, so no lock. */
struct value {
    int refs;
    size_t len;
    char data[];
};

struct slot {
    uint32_t version;    /* 0: the checkpoint does not have the channel */
    struct value *value; /* NULL: empty at this version */
};

/* A checkpoint. */
struct point {
    char ns[8], id[16], parent[16], run[16];
    uint32_t step;
    struct slot slots[CHANNELS];
};

/* A write. */
struct note {
    char ns[8], id[16], task[16];
    int idx;
    int channel;
    struct value *value;
};

struct conv {
    char thread[16];
    bool is_shared;
    bool exists;
    struct point *points; /* by id, ascending; ids are unique across namespaces */
    size_t point_count;
    struct note *notes; /* by (ns, id, task, idx) */
    size_t note_count;
};

struct worker {
    unsigned index;
    char tag;
    uint64_t seed;
    uint32_t count; /* operations so far */
    bool is_small;  /* short values and conversations: for tests that repeat a session very often */
    bool is_big;    /* long ones: copying a thread takes several batches */
    struct conv convs[CONVS];
};

enum op_kind {
    OP_PUT,
    OP_WRITES,
    OP_KEEP_LATEST,
    OP_PRUNE_ALL,
    OP_DELETE,
    OP_COPY,
    OP_COPY_REFUSED,
    OP_DELETE_RUNS,
    OP_KINDS
};

struct op {
    enum op_kind kind;
    uint32_t number;
    unsigned conv;
    unsigned target;  /* of a copy */
    unsigned touched; /* bit n: may change conversation n */
    struct point point;
    unsigned changed; /* bit n: channel n gets a new version */
    struct note notes[NOTES_MAX];
    size_t note_count;
    char run[16];
};

void worker_init(struct worker *worker, unsigned index, uint64_t seed);
void worker_fini(struct worker *worker);

/* Operation number worker->count + 1, given the model as it is. Changes nothing. */
void op_make(const struct worker *worker, struct op *op);
void op_fini(struct op *op);
const char *op_name(enum op_kind kind);

/* Applies the operation to those of its conversations that are in `which`. */
void op_model(const struct op *op, struct worker *worker, unsigned which);

/* The operation as arguments of heddle.h; borrows from `op` and `worker`. */
struct call {
    const struct op *op;
    struct heddle_checkpoint put;
    struct heddle_writes writes;
    struct heddle_value values[CHANNELS + NOTES_MAX];
    struct heddle_thread thread, target;
    struct heddle_bytes run;
    char checkpoint[512], metadata[128], versions[256];
};

void call_make(struct call *call, const struct op *op, const struct worker *worker);
/* Allocates nothing itself. A refused copy that is refused counts as success. */
int call_run(struct call *call, struct heddle *store, struct heddle_error *error);

const char *channel_name(int channel);
const char *channel_type(int channel);
void write_checkpoint(const struct point *point, char *out, size_t size);
void write_metadata(const struct point *point, char *out, size_t size);

/* Copies of conversations, so that a model can be taken back. */
void conv_copy(struct conv *to, const struct conv *from);
void conv_fini(struct conv *conv);

/* ---- dump.c ---- */

/* The caller frees them. NULL when reading the store failed, with the cause in `error`. */
char *dump_model(const struct worker *worker, unsigned conv);
char *dump_store(const struct worker *worker, unsigned conv, struct heddle *store,
                 struct heddle_error *error);
/* Shows the first line that differs. */
void dump_diff(const char *wanted, const char *got);

/* ---- small helpers ---- */

/* HEDDLE_FAULT_EVERY: the step from one fault to the next; default 1. */
long fault_every(void);
uint64_t mix(uint64_t x);
uint64_t random_next(uint64_t *state);
/* From 0 to n - 1. */
uint32_t random_below(uint64_t *state, uint32_t n);
void *must_alloc(void *ptr, size_t size);

#endif
