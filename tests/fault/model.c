#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const char *type;
} channels[] = {
    {"messages", "json"}, {"files", "bin"},          {"count", "json"},
    {"notes", "hd1"},     {"__interrupt__", "json"},
};

/* ---- helpers ---- */

long fault_every(void)
{
    const char *text = getenv("HEDDLE_FAULT_EVERY");
    long every = text ? strtol(text, NULL, 10) : 1;

    return every > 0 ? every : 1;
}

uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t random_next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return mix(*state);
}

uint32_t random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((random_next(state) >> 32) * n >> 32);
}

void *must_alloc(void *ptr, size_t size)
{
    void *grown = realloc(ptr, size ? size : 1);

    if (!grown) {
        (void)fprintf(stderr, "the test itself is out of memory\n");
        abort();
    }
    return grown;
}

static struct value *value_make(size_t len)
{
    struct value *value = must_alloc(NULL, sizeof(*value) + len + 1);

    value->refs = 1;
    value->len = len;
    value->data[len] = '\0';
    return value;
}

static struct value *value_ref(struct value *value)
{
    if (value)
        value->refs++;
    return value;
}

static void value_unref(struct value *value)
{
    if (value && --value->refs == 0)
        free(value);
}

/* ---- conversations ---- */

static void point_fini(struct point *point)
{
    for (int i = 0; i < CHANNELS; i++)
        value_unref(point->slots[i].value);
}

static struct point point_copy(const struct point *point)
{
    for (int i = 0; i < CHANNELS; i++)
        value_ref(point->slots[i].value);
    return *point;
}

static void conv_clear(struct conv *conv)
{
    for (size_t i = 0; i < conv->point_count; i++)
        point_fini(&conv->points[i]);
    for (size_t i = 0; i < conv->note_count; i++)
        value_unref(conv->notes[i].value);
    conv->point_count = conv->note_count = 0;
    conv->exists = conv->is_shared;
}

void conv_fini(struct conv *conv)
{
    conv_clear(conv);
    free(conv->points);
    free(conv->notes);
    conv->points = NULL;
    conv->notes = NULL;
}

/* Replaces the contents of `to` but not its identity. */
static void conv_take_over(struct conv *to, const struct conv *from)
{
    conv_clear(to);
    to->points = must_alloc(to->points, from->point_count * sizeof(*to->points));
    to->notes = must_alloc(to->notes, from->note_count * sizeof(*to->notes));
    for (size_t i = 0; i < from->point_count; i++)
        to->points[i] = point_copy(&from->points[i]);
    for (size_t i = 0; i < from->note_count; i++) {
        to->notes[i] = from->notes[i];
        value_ref(to->notes[i].value);
    }
    to->point_count = from->point_count;
    to->note_count = from->note_count;
    to->exists = from->exists;
}

void conv_copy(struct conv *to, const struct conv *from)
{
    *to = *from;
    to->points = NULL;
    to->notes = NULL;
    to->point_count = to->note_count = 0;
    conv_take_over(to, from);
}

void worker_init(struct worker *worker, unsigned index, uint64_t seed)
{
    memset(worker, 0, sizeof(*worker));
    worker->index = index;
    worker->tag = (char)('a' + index);
    worker->seed = seed;
    for (unsigned i = 0; i < CONVS; i++) {
        struct conv *conv = &worker->convs[i];

        conv->is_shared = conv->exists = i == SHARED;
        if (i == SHARED)
            (void)snprintf(conv->thread, sizeof(conv->thread), "shared");
        else
            (void)snprintf(conv->thread, sizeof(conv->thread), "%c%u", worker->tag, i);
    }
}

void worker_fini(struct worker *worker)
{
    for (unsigned i = 0; i < CONVS; i++)
        conv_fini(&worker->convs[i]);
}

/* ---- effects of operations ---- */

static void model_put(struct conv *conv, const struct op *op)
{
    size_t at = 0;

    conv->exists = true;
    while (at < conv->point_count && strcmp(conv->points[at].id, op->point.id) < 0)
        at++;
    if (at < conv->point_count && strcmp(conv->points[at].id, op->point.id) == 0) {
        point_fini(&conv->points[at]);
    } else {
        conv->points = must_alloc(conv->points, (conv->point_count + 1) * sizeof(*conv->points));
        memmove(&conv->points[at + 1], &conv->points[at],
                (conv->point_count - at) * sizeof(*conv->points));
        conv->point_count++;
    }
    conv->points[at] = point_copy(&op->point);
}

static int note_cmp(const struct note *a, const struct note *b)
{
    int order = strcmp(a->ns, b->ns);

    if (order == 0)
        order = strcmp(a->id, b->id);
    if (order == 0)
        order = strcmp(a->task, b->task);
    return order ? order : a->idx - b->idx;
}

/* Special channels replace existing writes, the others keep the first. */
static void model_note(struct conv *conv, const struct note *note)
{
    size_t at = 0;

    while (at < conv->note_count && note_cmp(&conv->notes[at], note) < 0)
        at++;
    if (at < conv->note_count && note_cmp(&conv->notes[at], note) == 0) {
        if (note->idx >= 0)
            return;
        value_unref(conv->notes[at].value);
    } else {
        conv->notes = must_alloc(conv->notes, (conv->note_count + 1) * sizeof(*conv->notes));
        memmove(&conv->notes[at + 1], &conv->notes[at],
                (conv->note_count - at) * sizeof(*conv->notes));
        conv->note_count++;
    }
    conv->notes[at] = *note;
    value_ref(note->value);
}

/* A checkpoint with its writes. Writes of checkpoints that were never put stay. */
static void model_remove(struct conv *conv, size_t at)
{
    struct point gone = conv->points[at];
    size_t kept = 0;

    for (size_t i = 0; i < conv->note_count; i++) {
        struct note *note = &conv->notes[i];

        if (strcmp(note->ns, gone.ns) == 0 && strcmp(note->id, gone.id) == 0)
            value_unref(note->value);
        else
            conv->notes[kept++] = *note;
    }
    conv->note_count = kept;
    memmove(&conv->points[at], &conv->points[at + 1],
            (conv->point_count - at - 1) * sizeof(*conv->points));
    conv->point_count--;
    point_fini(&gone);
}

static const struct point *newest(const struct conv *conv, const char *ns)
{
    for (size_t i = conv->point_count; i > 0; i--) {
        if (strcmp(conv->points[i - 1].ns, ns) == 0)
            return &conv->points[i - 1];
    }
    return NULL;
}

static void model_keep_latest(struct conv *conv)
{
    for (size_t i = conv->point_count; i > 0; i--) {
        if (&conv->points[i - 1] != newest(conv, conv->points[i - 1].ns))
            model_remove(conv, i - 1);
    }
}

static void model_delete_run(struct conv *conv, const char *run)
{
    for (size_t i = conv->point_count; i > 0; i--) {
        if (strcmp(conv->points[i - 1].run, run) == 0)
            model_remove(conv, i - 1);
    }
}

static void model_one(const struct op *op, struct worker *worker, unsigned at)
{
    struct conv *conv = &worker->convs[at];

    switch (op->kind) {
    case OP_PUT:
        model_put(conv, op);
        break;
    case OP_WRITES:
        conv->exists = true;
        for (size_t i = 0; i < op->note_count; i++)
            model_note(conv, &op->notes[i]);
        break;
    case OP_KEEP_LATEST:
        model_keep_latest(conv);
        break;
    case OP_PRUNE_ALL:
    case OP_DELETE:
        conv_clear(conv);
        break;
    case OP_COPY:
        conv_take_over(conv, &worker->convs[op->conv]);
        break;
    case OP_DELETE_RUNS:
        model_delete_run(conv, op->run);
        break;
    case OP_COPY_REFUSED:
    case OP_KINDS:
        break;
    }
}

void op_model(const struct op *op, struct worker *worker, unsigned which)
{
    for (unsigned i = 0; i < CONVS; i++) {
        if (op->touched & which & 1u << i)
            model_one(op, worker, i);
    }
}

/* ---- values ---- */

static size_t put_words(char *out, size_t len, uint64_t *random)
{
    static const char *const words[] = {"the ",  "agent ", "said ",  "that ", "it ",    "would ",
                                        "look ", "for ",   "three ", "more ", "files ", "today "};
    size_t at = 0;

    while (at < len) {
        const char *word = words[random_below(random, sizeof(words) / sizeof(words[0]))];

        while (*word && at < len)
            out[at++] = *word++;
    }
    return len;
}

static size_t message_size(const struct worker *worker, uint64_t *random)
{
    if (worker->is_small)
        return 100 + random_below(random, 200);
    return random_below(random, 50) == 0 ? 100000 : 20 + random_below(random, 900);
}

/* The list with one message more; a list grown too long starts over. */
static struct value *more_messages(const struct worker *worker, const struct value *old,
                                   uint64_t *random)
{
    size_t size = message_size(worker, random), limit = worker->is_small ? 2000 : 60000;
    size_t kept = old && old->len > 2 && old->len < limit ? old->len - 1 : 1;
    struct value *value = value_make(kept + size + 120);
    size_t at = kept;

    memcpy(value->data, kept > 1 ? old->data : "[", kept);
    at += (size_t)snprintf(value->data + at, 100,
                           "%s{\"type\":\"human\",\"id\":\"%016llx\","
                           "\"content\":\"",
                           kept > 1 ? "," : "", (unsigned long long)random_next(random));
    at += put_words(value->data + at, size, random);
    memcpy(value->data + at, "\"}]", 4);
    value->len = at + 3;
    return value;
}

/* Bytes that do not compress; of an old value a piece in the middle changes. */
static struct value *other_bytes(const struct worker *worker, const struct value *old,
                                 uint64_t *random)
{
    size_t len = 100 + random_below(random, worker->is_small ? 800
                                            : worker->is_big ? 1500000
                                                             : 20000);
    bool is_edit = old && random_below(random, 3) > 0;
    struct value *value = value_make(is_edit ? old->len : len);
    size_t from = 0, to = value->len;

    if (is_edit) {
        memcpy(value->data, old->data, old->len);
        from = random_below(random, (uint32_t)old->len + 1);
        to = from + (value->len - from) / 8;
    }
    for (size_t i = from; i < to; i++)
        value->data[i] = (char)random_next(random);
    return value;
}

static struct value *small_number(uint64_t *random)
{
    struct value *value = value_make(24);

    value->len = (size_t)snprintf(value->data, 24, "%llu", (unsigned long long)random_next(random));
    return value;
}

static struct value *new_value(const struct worker *worker, int channel, const struct value *old,
                               uint64_t *random)
{
    switch (channel) {
    case 0:
    case 3:
        return more_messages(worker, old, random);
    case 1:
        return other_bytes(worker, old, random);
    default:
        return small_number(random);
    }
}

/* ---- making operations ---- */

static void make_id(const struct worker *worker, uint32_t number, char out[16])
{
    (void)snprintf(out, 16, "%c%08x", worker->tag, number);
}

static void change_slots(const struct worker *worker, struct op *op, const struct point *base,
                         uint64_t *random)
{
    static const uint32_t percent[CHANNELS] = {70, 30, 80, 20};

    if (base) {
        struct point copy = point_copy(base);

        memcpy(op->point.slots, copy.slots, sizeof(op->point.slots));
    }
    for (int i = 0; i < CHANNELS; i++) {
        struct slot *slot = &op->point.slots[i];
        struct value *old = slot->value;

        if (random_below(random, 100) >= percent[i])
            continue;
        op->changed |= 1u << i;
        slot->version = op->number * 16 + worker->index;
        slot->value = random_below(random, 12) == 0 ? NULL : new_value(worker, i, old, random);
        value_unref(old);
    }
}

static const char *some_ns(uint64_t *random)
{
    return random_below(random, 5) == 0 ? "sub|1" : "";
}

/* Run ids span several conversations of a worker. */
static void make_run(const struct worker *worker, uint32_t number, char out[16])
{
    (void)snprintf(out, 16, "run-%c%u", worker->tag, number / 8);
}

static void make_put(const struct worker *worker, struct op *op, uint64_t *random)
{
    const struct conv *conv = &worker->convs[op->conv];
    const char *ns = some_ns(random);
    const struct point *parent = newest(conv, ns);
    struct point *point = &op->point;

    if (conv->point_count && random_below(random, 6) == 0) { /* from an older one: a fork */
        parent = &conv->points[random_below(random, (uint32_t)conv->point_count)];
        ns = parent->ns;
    }
    (void)snprintf(point->ns, sizeof(point->ns), "%s", ns);
    make_id(worker, op->number, point->id);
    (void)snprintf(point->parent, sizeof(point->parent), "%s", parent ? parent->id : "");
    make_run(worker, op->number, point->run);
    point->step = op->number;
    change_slots(worker, op, parent, random);
}

/* A second put of an id: other values, the same place in the tree. */
static void make_reput(const struct worker *worker, struct op *op, uint64_t *random)
{
    const struct conv *conv = &worker->convs[op->conv];
    const struct point *old = &conv->points[random_below(random, (uint32_t)conv->point_count)];

    op->point = *old;
    memset(op->point.slots, 0, sizeof(op->point.slots));
    op->point.step = op->number;
    change_slots(worker, op, old, random);
}

static void make_writes(const struct worker *worker, struct op *op, uint64_t *random)
{
    const struct conv *conv = &worker->convs[op->conv];
    const struct point *point = NULL;
    const struct value *messages = NULL;
    struct note base = {.ns = ""};

    if (conv->point_count)
        point = &conv->points[conv->point_count - 1 -
                              random_below(
                                  random, conv->point_count < 3 ? (uint32_t)conv->point_count : 3)];
    if (point && random_below(random, 6) > 0) {
        memcpy(base.ns, point->ns, sizeof(base.ns));
        memcpy(base.id, point->id, sizeof(base.id));
        messages = point->slots[0].value;
    } else { /* before their checkpoint: the next put may have this id or not */
        make_id(worker, op->number + 1, base.id);
    }
    (void)snprintf(base.task, sizeof(base.task), "task-%u", random_below(random, 3));
    op->note_count = 1 + random_below(random, NOTES_MAX);
    for (size_t i = 0; i < op->note_count; i++) {
        struct note *note = &op->notes[i];

        *note = base;
        note->channel = (int)random_below(random, CHANNELS);
        note->idx = (int)i;
        if (i == 0 && random_below(random, 4) == 0) {
            note->channel = SPECIAL;
            note->idx = -3;
        }
        note->value = new_value(worker, note->channel, messages, random);
    }
}

static void make_delete_runs(const struct worker *worker, struct op *op, uint64_t *random)
{
    const struct conv *conv = &worker->convs[op->conv];
    size_t at = random_below(random, (uint32_t)conv->point_count);

    op->kind = OP_DELETE_RUNS;
    memcpy(op->run, conv->points[conv->is_shared ? 0 : at].run, sizeof(op->run));
    op->touched = (1u << CONVS) - 1;
}

static void make_copy(const struct worker *worker, struct op *op, uint64_t *random)
{
    op->target = (op->conv + 1 + random_below(random, SHARED - 1)) % SHARED;
    for (unsigned i = 0; i < SHARED && random_below(random, 4) > 0; i++) {
        if (i != op->conv && !worker->convs[i].exists)
            op->target = i; /* mostly where it is allowed */
    }
    op->touched = 0;
    if (!worker->convs[op->conv].exists)
        op->kind = OP_COPY; /* of nothing */
    else if (worker->convs[op->target].exists)
        op->kind = OP_COPY_REFUSED;
    else
        op->touched = 1u << op->target;
}

static enum op_kind choose(const struct worker *worker, struct op *op, uint64_t *random)
{
    static const struct {
        enum op_kind kind;
        uint32_t percent;
    } kinds[] = {{OP_PUT, 48}, {OP_WRITES, 28}, {OP_KEEP_LATEST, 5}, {OP_DELETE_RUNS, 5},
                 {OP_COPY, 7}, {OP_DELETE, 4},  {OP_PRUNE_ALL, 3}};
    const struct conv *conv = &worker->convs[op->conv];
    uint32_t at = random_below(random, 100);
    size_t limit = worker->is_small || worker->is_big ? 8 : 20;
    enum op_kind kind = OP_PUT;

    for (size_t i = 0, sum = 0; i < sizeof(kinds) / sizeof(kinds[0]) && at >= sum; i++) {
        sum += kinds[i].percent;
        kind = kinds[i].kind;
    }
    if (conv->point_count > limit)
        kind = conv->is_shared || at < 30 ? OP_DELETE_RUNS : OP_KEEP_LATEST;
    if (kind == OP_DELETE_RUNS && conv->point_count == 0)
        kind = OP_PUT;
    if (conv->is_shared && kind != OP_WRITES && kind != OP_DELETE_RUNS)
        kind = OP_PUT;
    return kind;
}

void op_make(const struct worker *worker, struct op *op)
{
    uint64_t random = mix(worker->seed ^ mix(worker->index)) ^ mix(worker->count);

    memset(op, 0, sizeof(*op));
    op->number = worker->count + 1;
    op->conv = random_below(&random, CONVS);
    op->touched = 1u << op->conv;
    op->kind = choose(worker, op, &random);
    if (op->kind == OP_PUT && worker->convs[op->conv].point_count && random_below(&random, 9) == 0)
        make_reput(worker, op, &random);
    else if (op->kind == OP_PUT)
        make_put(worker, op, &random);
    else if (op->kind == OP_WRITES)
        make_writes(worker, op, &random);
    else if (op->kind == OP_DELETE_RUNS)
        make_delete_runs(worker, op, &random);
    else if (op->kind == OP_COPY)
        make_copy(worker, op, &random);
}

void op_fini(struct op *op)
{
    point_fini(&op->point);
    for (size_t i = 0; i < op->note_count; i++)
        value_unref(op->notes[i].value);
    op->note_count = 0;
}

const char *op_name(enum op_kind kind)
{
    static const char *const names[OP_KINDS] = {"put",          "put_writes", "keep_latest",
                                                "prune_all",    "delete",     "copy",
                                                "refused copy", "delete_runs"};

    return names[kind];
}

/* ---- calling ---- */

static struct heddle_bytes text(const char *s)
{
    return (struct heddle_bytes){s, strlen(s)};
}

const char *channel_name(int channel)
{
    return channels[channel].name;
}

const char *channel_type(int channel)
{
    return channels[channel].type;
}

/* {"channel":"version",…} of the channels in `which`; every other version is a number. */
static void write_versions(const struct point *point, unsigned which, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "{");

    for (int i = 0; i < CHANNELS; i++) {
        const char *quote = i % 2 ? "" : "\"";

        if (which & 1u << i && point->slots[i].version)
            at += (size_t)snprintf(out + at, size - at, "%s\"%s\":%s%u%s", at > 1 ? "," : "",
                                   channels[i].name, quote, point->slots[i].version, quote);
    }
    (void)snprintf(out + at, size - at, "}");
}

void write_checkpoint(const struct point *point, char *out, size_t size)
{
    char versions[256];

    write_versions(point, (1u << CHANNELS) - 1, versions, sizeof(versions));
    (void)snprintf(out, size, "{\"v\": 4, \"id\": \"%s\", \"channel_versions\": %s}", point->id,
                   versions);
}

void write_metadata(const struct point *point, char *out, size_t size)
{
    (void)snprintf(out, size, "{\"source\":\"loop\",\"step\":%u,\"run_id\":\"%s\"}", point->step,
                   point->run);
}

static struct heddle_value value_of(int channel, const struct value *value)
{
    return (struct heddle_value){
        text(channels[channel].name), text(channels[channel].type), {value->data, value->len}};
}

static void call_put(struct call *call, const struct op *op)
{
    const struct point *point = &op->point;

    write_checkpoint(point, call->checkpoint, sizeof(call->checkpoint));
    write_metadata(point, call->metadata, sizeof(call->metadata));
    write_versions(point, op->changed, call->versions, sizeof(call->versions));
    call->put = (struct heddle_checkpoint){.thread = call->thread,
                                           .ns = text(point->ns),
                                           .id = text(point->id),
                                           .parent = text(point->parent),
                                           .checkpoint = text(call->checkpoint),
                                           .metadata = text(call->metadata),
                                           .new_versions = text(call->versions),
                                           .values = call->values};
    for (int i = 0; i < CHANNELS; i++) {
        if (op->changed & 1u << i && point->slots[i].value)
            call->values[call->put.value_count++] = value_of(i, point->slots[i].value);
    }
}

static void call_writes(struct call *call, const struct op *op)
{
    const struct note *first = &op->notes[0];

    call->writes = (struct heddle_writes){.thread = call->thread,
                                          .ns = text(first->ns),
                                          .checkpoint_id = text(first->id),
                                          .task_id = text(first->task),
                                          .task_path = text("~path"),
                                          .values = call->values,
                                          .value_count = op->note_count};
    for (size_t i = 0; i < op->note_count; i++)
        call->values[i] = value_of(op->notes[i].channel, op->notes[i].value);
}

void call_make(struct call *call, const struct op *op, const struct worker *worker)
{
    memset(call, 0, sizeof(*call));
    call->op = op;
    call->thread.id = text(worker->convs[op->conv].thread);
    call->target.id = text(worker->convs[op->target].thread);
    call->run = text(op->run);
    if (op->kind == OP_PUT)
        call_put(call, op);
    else if (op->kind == OP_WRITES)
        call_writes(call, op);
}

int call_run(struct call *call, struct heddle *store, struct heddle_error *error)
{
    int err = 0;

    switch (call->op->kind) {
    case OP_PUT:
        return heddle_put(store, &call->put, error);
    case OP_WRITES:
        return heddle_put_writes(store, &call->writes, error);
    case OP_KEEP_LATEST:
        return heddle_prune(store, &call->thread, 1, HEDDLE_KEEP_LATEST, error);
    case OP_PRUNE_ALL:
        return heddle_prune(store, &call->thread, 1, HEDDLE_DELETE_ALL, error);
    case OP_DELETE:
        return heddle_delete_thread(store, &call->thread, error);
    case OP_COPY:
        return heddle_copy_thread(store, &call->thread, &call->target, error);
    case OP_COPY_REFUSED:
        err = heddle_copy_thread(store, &call->thread, &call->target, error);
        return err == HEDDLE_EEXISTS ? 0 : err ? err : HEDDLE_EEXISTS;
    case OP_DELETE_RUNS:
        return heddle_delete_runs(store, (struct heddle_bytes){0}, &call->run, 1, error);
    case OP_KINDS:
        break;
    }
    return err;
}
