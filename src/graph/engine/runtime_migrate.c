#include "graph/engine/runtime_migrate.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/engine/task.h"
#include "graph/engine/task_status.h"
#include "graph/engine/tasks.h"

enum hd_graph_ids hd_runtime_migrate_writer(const struct hd_val *metadata)
{
    struct hd_slice runtime = hd_val_get_string(hd_val_get(metadata, HD_S("runtime")));

    return hd_slice_eq(runtime, HD_S("js")) ? HD_IDS_JS : HD_IDS_PYTHON;
}

/* ---- both ids of a task ----------------------------------------------- */

/* The task's ids in the other runtime: one per trigger, whose order may differ there. */
struct pair {
    const struct hd_task *task;
    char (*others)[HD_UUID_SIZE];
    size_t count;
};

struct task_crossing {
    const struct hd_checkpoint_state *live;
    struct hd_slice ns;
    int64_t step;
    bool is_foreign; /* the other runtime wrote the checkpoint */
    const struct hd_runtime_migrate_rules *rules;
    struct hd_tasks tasks;
    struct pair *pairs;
    struct hd_pending_writes *pending_writes;
    struct heddle_error *fault;
};

static int make_pair(const struct task_crossing *c, const struct hd_task *task, struct pair *pair)
{
    bool is_js = c->live->graph->ids == HD_IDS_JS;
    size_t count = is_js || task->push != HD_PULL ? 1 : task->node->trigger_count;
    int err = 0;

    pair->task = task;
    pair->others = hd_calloc(count + 1, sizeof(*pair->others));
    if (!pair->others)
        return HD_ENOMEM;
    for (size_t i = 0; i < count && !err; i++) {
        char *out = pair->others[pair->count];

        if (is_js)
            err = hd_task_id(task, c->live, c->ns, c->step, HD_IDS_PYTHON, out);
        else if (task->push == HD_PULL &&
                 !hd_checkpoint_state_has_unseen(c->live, task->node, task->node->triggers[i]))
            continue;
        else
            err = hd_task_js_id(task, c->live, c->ns, c->step, i, out);
        pair->count++;
    }
    return err;
}

static int make_pairs(struct task_crossing *c)
{
    int err = hd_tasks_prepare(&c->tasks, c->live, c->ns, c->step, false);

    if (err)
        return err;
    c->pairs = hd_calloc(c->tasks.count + 1, sizeof(*c->pairs));
    if (!c->pairs)
        return HD_ENOMEM;
    for (size_t i = 0; i < c->tasks.count && !err; i++)
        err = make_pair(c, c->tasks.list[i], &c->pairs[i]);
    return err;
}

static void free_pairs(struct task_crossing *c)
{
    for (size_t i = 0; c->pairs && i < c->tasks.count; i++)
        hd_free(c->pairs[i].others);
    hd_free(c->pairs);
    hd_tasks_fini(&c->tasks);
}

static bool is_own_write(const struct pair *pair, const struct hd_pending_write *pending_write)
{
    return memcmp(pair->task->id, pending_write->task, HD_UUID_LEN) == 0;
}

static bool is_other(const struct pair *pair, const struct hd_pending_write *pending_write)
{
    for (size_t i = 0; i < pair->count; i++) {
        if (memcmp(pair->others[i], pending_write->task, HD_UUID_LEN) == 0)
            return true;
    }
    return false;
}

/* ---- which runtime got further ---------------------------------------- */

struct side {
    bool is_there;
    bool has_output;
    size_t answers;
};

static void look_at(struct side *side, const struct hd_write *write)
{
    side->is_there = true;
    side->has_output |= !hd_write_is_control(write);
    if (write->channel == HD_W_RESUME)
        side->answers = hd_val_is_list(write->val) ? hd_val_count(write->val) : 1;
}

/* If both have writes of a task, the runtime that continued after the other has more of them. */
static bool is_further(const struct side *other, const struct side *own)
{
    if (!other->is_there || !own->is_there)
        return other->is_there;
    if (other->has_output != own->has_output)
        return other->has_output;
    return other->answers > own->answers;
}

/* ---- interrupts ------------------------------------------------------- */

/* The namespace of a task's subgraph. */
static int inner_ns(const struct task_crossing *c, const struct hd_task *task, const char *id,
                    struct hd_buf *out)
{
    int err = 0;

    if (c->ns.len > 0)
        err = hd_buf_printf(out, "%.*s|", (int)c->ns.len, c->ns.ptr);
    return err ? err
               : hd_buf_printf(out, "%.*s:%s", (int)task->node->name.len, task->node->name.ptr, id);
}

/* The id of a task's interrupt after `answers` resume values; JavaScript has one id for all. */
static int question_id(const struct task_crossing *c, const struct hd_task *task, const char *id,
                       size_t answers, char out[33])
{
    struct hd_buf ns;
    int err;

    hd_buf_init(&ns, (size_t)1 << 20);
    err = inner_ns(c, task, id, &ns);
    if (!err && answers > 0)
        err = hd_buf_printf(&ns, "|%zu", answers);
    if (!err)
        hd_hash_hex(hd_buf_slice(&ns), out);
    hd_buf_fini(&ns);
    return err;
}

/* *is_its is true if the task itself raised the interrupt, not a graph within it. */
static int check_question(const struct task_crossing *c, const struct hd_task *task,
                          const char *other, size_t answers, const struct hd_val *question,
                          bool *is_its)
{
    struct hd_slice id = hd_val_get_string(hd_val_get(question, HD_S("id")));
    char known[33];
    int err = 0;

    *is_its = false;
    for (size_t i = 0; i <= answers && !err && !*is_its; i++) {
        err = question_id(c, task, other, i, known);
        *is_its = !err && hd_slice_eq(id, hd_slice_cstr(known));
    }
    return err;
}

static int refuse_inner(const struct task_crossing *c, const struct hd_task *task)
{
    return hd_error_set(c->fault, HD_EUNSUPPORTED,
                        "node '%.*s' stopped within a subgraph in another runtime: only that "
                        "runtime can continue it",
                        (int)(task->node->name.len < 100 ? task->node->name.len : 100),
                        task->node->name.ptr);
}

/* Gives the interrupts of a write the ids that the reader computes. The value becomes a list. */
static int migrate_questions(const struct task_crossing *c, const struct hd_task *task,
                             const char *other, size_t answers, struct hd_write *write)
{
    const struct hd_val *asked = write->val;
    size_t count = hd_val_is_list(asked) ? hd_val_count(asked) : 1;
    struct hd_val *list = hd_val_list();
    char id[33];
    int err = question_id(c, task, task->id, c->live->graph->ids == HD_IDS_JS ? 0 : answers, id);

    for (size_t i = 0; i < count && !err; i++) {
        const struct hd_val *one = hd_val_is_list(asked) ? hd_val_at(asked, i) : asked;
        struct hd_val *shown = hd_val_ref(one);
        bool is_its;

        err = check_question(c, task, other, answers, one, &is_its);
        if (!err && !is_its && c->rules->is_strict)
            err = refuse_inner(c, task);
        if (!err && is_its)
            shown = hd_val_with(shown, HD_S("id"), hd_val_cstr(id));
        list = hd_val_append(list, shown);
    }
    if (err || !list) {
        hd_val_unref(list);
        return err ? err : HD_ENOMEM;
    }
    hd_val_unref(write->val);
    write->val = list;
    return 0;
}

/* ---- writes ----------------------------------------------------------- */

/*
 * *out is true for writes without a task: manual updates and input have ids derived from the
 * checkpoint.
 */
static int is_nobodys(const struct task_crossing *c, const struct hd_pending_write *pending_write,
                      bool *out)
{
    char name[48] = "__input__", id[HD_UUID_SIZE];
    uint8_t bytes[16];
    int err = 0;

    *out = hd_is_null_task(pending_write->task);
    if (*out || !hd_uuid_parse(hd_slice_cstr(c->live->id), bytes))
        return 0;
    for (size_t i = 0; i <= c->pending_writes->count && !err && !*out; i++) {
        if (i == 1)
            (void)snprintf(name, sizeof(name), "__interrupt__");
        else if (i > 1)
            (void)snprintf(name, sizeof(name), "__interrupt__:%zu", i - 1);
        err = hd_uuid_v5(bytes, hd_slice_cstr(name), id);
        *out = !err && memcmp(id, pending_write->task, HD_UUID_LEN) == 0;
    }
    return err;
}

static bool is_gone(const struct hd_pending_write *pending_write, const void *arg)
{
    (void)arg;
    return pending_write->task[0] == '\0';
}

/* If both runtimes have writes of the task, keeps those of the one that got further. */
static int migrate_task(struct task_crossing *c, const struct pair *pair)
{
    struct side own = {0}, other = {0};
    bool takes_other;
    int err = 0;

    for (size_t i = 0; i < c->pending_writes->count; i++) {
        if (is_own_write(pair, &c->pending_writes->list[i]))
            look_at(&own, &c->pending_writes->list[i].write);
        else if (is_other(pair, &c->pending_writes->list[i]))
            look_at(&other, &c->pending_writes->list[i].write);
    }
    if (!other.is_there)
        return 0;
    takes_other = is_further(&other, &own);
    for (size_t i = 0; i < c->pending_writes->count && !err; i++) {
        struct hd_pending_write *pending_write = &c->pending_writes->list[i];

        if (is_own_write(pair, pending_write)) {
            if (takes_other)
                pending_write->task[0] = '\0';
        } else if (is_other(pair, pending_write)) {
            if (takes_other && pending_write->write.channel == HD_W_INTERRUPT)
                err = migrate_questions(c, pair->task, pending_write->task, other.answers,
                                        &pending_write->write);
            if (takes_other)
                memcpy(pending_write->task, pair->task->id, HD_UUID_SIZE);
            else
                pending_write->task[0] = '\0';
        }
    }
    return err;
}

static int check_rest(const struct task_crossing *c)
{
    int err = 0;

    for (size_t i = 0; i < c->pending_writes->count && !err; i++) {
        const struct hd_pending_write *pending_write = &c->pending_writes->list[i];
        bool is_known =
            pending_write->task[0] == '\0' || hd_tasks_find(&c->tasks, pending_write->task);

        if (!is_known)
            err = is_nobodys(c, pending_write, &is_known);
        if (!err && !is_known)
            err = hd_error_set(c->fault, HD_EUNSUPPORTED,
                               "the thread stopped within a step of another runtime, with tasks "
                               "that are unknown here: only that runtime can continue it");
    }
    return err;
}

/* Refuses a subgraph that the other runtime has started: it would start again here. */
static int check_inner(const struct task_crossing *c, const struct pair *pair)
{
    struct hd_buf ns;
    int err = 0;

    if (hd_status_is_finished(c->pending_writes, pair->task->id))
        return 0;
    hd_buf_init(&ns, (size_t)1 << 20);
    for (size_t i = 0; i < pair->count && !err; i++) {
        bool has_states = false;

        ns.len = 0;
        err = inner_ns(c, pair->task, pair->others[i], &ns);
        if (!err)
            err = c->rules->has_states(c->rules->ctx, hd_buf_slice(&ns), &has_states);
        if (!err && has_states)
            err = refuse_inner(c, pair->task);
    }
    hd_buf_fini(&ns);
    return err;
}

static int check_crossing(const struct task_crossing *c)
{
    int err = check_rest(c);

    for (size_t i = 0; i < c->tasks.count && !err && c->rules->has_states; i++)
        err = check_inner(c, &c->pairs[i]);
    return err;
}

/* All task ids of JavaScript are UUIDs of version 5; those of Python only by chance. */
static bool may_be_others(const struct hd_graph *graph,
                          const struct hd_pending_write *pending_write)
{
    if (hd_is_null_task(pending_write->task))
        return false;
    return graph->ids == HD_IDS_JS || pending_write->task[14] == '5';
}

int hd_runtime_migrate_writes(const struct hd_checkpoint_state *live, struct hd_slice ns,
                              int64_t step, enum hd_graph_ids writer,
                              const struct hd_runtime_migrate_rules *rules,
                              struct hd_pending_writes *pending_writes, struct heddle_error *fault)
{
    struct task_crossing c = {.live = live,
                              .ns = ns,
                              .step = step,
                              .is_foreign = writer != live->graph->ids,
                              .rules = rules,
                              .pending_writes = pending_writes,
                              .fault = fault};
    bool has_work = c.is_foreign && rules->has_states;
    int err;

    for (size_t i = 0; i < pending_writes->count && !has_work; i++)
        has_work = may_be_others(live->graph, &pending_writes->list[i]);
    if (!has_work)
        return 0;
    err = make_pairs(&c);
    for (size_t i = 0; i < c.tasks.count && !err; i++)
        err = migrate_task(&c, &c.pairs[i]);
    if (!err && rules->is_strict && c.is_foreign)
        err = check_crossing(&c);
    if (!err)
        hd_pending_writes_filter(pending_writes, is_gone, NULL);
    free_pairs(&c);
    return err;
}
