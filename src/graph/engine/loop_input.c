/*
 * The start of a run, before its first superstep: applies the input, or continues from the thread's
 * latest checkpoint with or without a command, or starts a branch at an older checkpoint that the
 * run addresses.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/engine/apply.h"
#include "graph/engine/checkpoint_state.h"
#include "graph/engine/command.h"
#include "graph/engine/engine.h"
#include "graph/engine/failure.h"
#include "graph/engine/loop.h"
#include "graph/engine/run.h"
#include "graph/engine/task.h"
#include "graph/engine/task_status.h"
#include "graph/engine/tasks.h"
#include "graph/engine/writes.h"
#include "value/val.h"

/* The run's start, relative to the stored checkpoint. */
struct stand {
    struct hd_val *input;   /* NULL: none */
    struct hd_val *command; /* NULL: none */
    bool is_resuming;
    bool is_travelling; /* time travel: starts at an addressed checkpoint */
    bool forks;         /* stores a new checkpoint as the start of a branch */
    bool has_resume_map;
    struct hd_writes carried; /* the command's writes, which the fork includes */
};

static bool is_source(const struct hd_loop *loop, const char *source)
{
    return hd_slice_eq(hd_val_get_string(hd_val_get(loop->metadata, HD_S("source"))),
                       hd_slice_cstr(source));
}

static bool is_edit(const struct hd_loop *loop)
{
    return is_source(loop, "update") || is_source(loop, "fork");
}

/*
 * A run that has already started continues, whatever its input. A delegated run is identified by
 * the task that waits for it, because the task may start it several times in one run and continue
 * it in the next.
 */
static bool is_same_run(const struct hd_loop *loop)
{
    const struct hd_val *task = hd_val_get(loop->run->options.metadata, HD_S(HD_META_TASK));
    const struct hd_val *stored = hd_val_get(loop->metadata, HD_S("run_id"));

    if (loop->run->options.around || task)
        return task && hd_val_equal(task, hd_val_get(loop->metadata, HD_S(HD_META_TASK)));
    return stored && hd_val_equal(hd_val_get(loop->run->options.metadata, HD_S("run_id")), stored);
}

/*
 * A subgraph with its own memory finds the checkpoint of its last visit there. If that visit is
 * complete, and belongs to another checkpoint of the parent graph, the visit that the run resumes
 * has stored nothing yet: the subgraph starts with its input.
 */
static int is_earlier_visit(const struct hd_loop *loop, bool *out)
{
    const struct hd_val *parents = hd_val_get(loop->metadata, HD_S("parents"));
    const struct hd_loop *outer = loop->outer ? loop->outer->loop : NULL;
    struct hd_tasks left = {NULL, 0, 0};
    int err;

    *out = false;
    if (!outer || loop->resuming != 1 || loop->pending_writes.count > 0 ||
        hd_slice_eq(hd_val_get_string(hd_val_get(parents, hd_loop_ns(outer))),
                    hd_slice_cstr(outer->live.id)))
        return 0;
    err = hd_tasks_prepare(&left, &loop->live, hd_loop_ns(loop), loop->step, false);
    *out = !err && left.count == 0;
    hd_tasks_fini(&left);
    return err;
}

static int judge(struct hd_loop *loop, struct stand *s)
{
    const struct hd_val *answer = hd_val_get(s->command, HD_S("resume"));
    bool continues = !s->input || s->command || (!loop->outer && is_same_run(loop));
    bool names_own = loop->outer && hd_val_get(loop->parents, hd_loop_ns(loop));
    bool answers = (s->command && !hd_val_is_null(answer)) || loop->resuming == 1;
    bool is_earlier;
    int err = is_earlier_visit(loop, &is_earlier);

    if (!loop->outer && loop->run->options.is_own)
        loop->load.is_superseded = false; /* by checkpoints of other branches */
    s->is_resuming = hd_checkpoint_state_has_versions(&loop->live) && !is_earlier &&
                     (loop->resuming >= 0 ? loop->resuming : continues);
    s->is_travelling = loop->has_checkpoint_id && (names_own || !answers);
    s->forks = s->is_resuming && s->is_travelling && (!is_edit(loop) || loop->load.is_superseded);
    loop->is_replaying = s->is_travelling || loop->load.is_superseded;
    return err;
}

static bool is_resume(const struct hd_pending_write *pending_write, const void *arg)
{
    (void)arg;
    return pending_write->write.channel == HD_W_RESUME;
}

/* A stored resume value without an interrupt id, which an earlier run may have used. */
static bool is_old_answer(const struct hd_pending_write *pending_write, const void *arg)
{
    return is_resume(pending_write, arg) && hd_is_null_task(pending_write->task);
}

static bool is_interrupt(const struct hd_pending_write *pending_write, const void *arg)
{
    (void)arg;
    return pending_write->write.channel == HD_W_INTERRUPT;
}

/* ---- commands --------------------------------------------------------- */

static bool is_resume_map(const struct hd_val *resume)
{
    if (!hd_val_is_object(resume) || hd_val_kind(resume) != HD_KIND_NONE)
        return false;
    for (size_t i = 0; i < hd_val_count(resume); i++) {
        struct hd_val *key;

        hd_val_member(resume, i, &key);
        if (!hd_is_interrupt_id(hd_val_get_string(key)))
            return false;
    }
    return true;
}

/* A resume value without an interrupt id is valid for one pending interrupt only. */
static int check_answer(struct hd_loop *loop, struct stand *s)
{
    struct hd_val *resume = hd_val_get(s->command, HD_S("resume"));
    size_t pending;

    if (hd_val_is_null(resume))
        return 0;
    if (!loop->saves) {
        hd_failure_set(&loop->failure, "RuntimeError",
                       "Cannot use Command(resume=...) without checkpointer");
        return HD_EINVAL;
    }
    s->has_resume_map = is_resume_map(resume);
    if (s->has_resume_map) {
        hd_val_unref(loop->run->resume_map);
        loop->run->resume_map = hd_val_ref(resume);
        return 0;
    }
    if (hd_status_pending(&loop->pending_writes, &pending) == 0 && pending > 1) {
        hd_failure_set(&loop->failure, "RuntimeError",
                       "When there are multiple pending interrupts, you must specify the "
                       "interrupt id when resuming. Docs: https://docs.langchain.com/oss/python/"
                       "langgraph/interrupts#handling-multiple-interrupts.");
        return HD_EINVAL;
    }
    return 0;
}

static int apply_command(struct hd_loop *loop, struct stand *s)
{
    struct hd_writes writes = {NULL, 0, 0};
    size_t kept = 0;
    int err = check_answer(loop, s);

    if (!err)
        err = hd_command_writes(loop->graph, s->command, &writes, &loop->failure);
    for (size_t i = 0; i < writes.count && s->has_resume_map; i++) {
        if (writes.list[i].channel == HD_W_RESUME)
            hd_val_unref(writes.list[i].val);
        else
            writes.list[kept++] = writes.list[i];
    }
    if (s->has_resume_map)
        writes.count = kept;
    if (!err && writes.count == 0 && !s->has_resume_map) {
        hd_failure_set(&loop->failure, "EmptyInputError", "Received empty Command input");
        err = HD_EINVAL;
    }
    if (!err && s->forks)
        err = hd_writes_copy(&s->carried, writes.list, writes.count);
    else if (!err)
        err = hd_loop_put_writes(loop, NULL, writes.list, writes.count);
    hd_writes_fini(&writes);
    return err;
}

/* Applies writes without a task: of this command, or of an earlier one that was not applied yet. */
static int apply_null_writes(struct hd_loop *loop, struct stand *s)
{
    struct hd_writes all = {NULL, 0, 0};
    struct hd_applied applied = {.row = hd_versions_seen_input(loop->graph), .writes = &all};
    bool *updated = hd_calloc(loop->graph->channel_count, sizeof(*updated));
    int err = updated ? 0 : HD_ENOMEM;

    for (size_t i = 0; i < loop->pending_writes.count && !err; i++) {
        if (hd_is_null_task(loop->pending_writes.list[i].task))
            err = hd_writes_copy(&all, &loop->pending_writes.list[i].write, 1);
    }
    if (!err)
        err = hd_writes_copy(&all, s->carried.list, s->carried.count);
    if (!err && all.count > 0)
        err = hd_apply(&loop->live, &applied, 1, true, updated, &loop->failure);
    for (size_t i = 0; !err && loop->live.has_updated && i < loop->graph->channel_count; i++)
        loop->live.updated[i] = loop->live.updated[i] || updated[i];
    hd_writes_fini(&all);
    hd_free(updated);
    return err;
}

/* ---- fork, resume, input ---------------------------------------------- */

/* A branch starts with a copy of the addressed checkpoint. */
static int fork_checkpoint(struct hd_loop *loop)
{
    bool has_updated = loop->live.has_updated;
    int err;

    hd_pending_writes_filter(&loop->pending_writes, is_interrupt, NULL);
    loop->live.has_updated = false;
    err = hd_loop_put_checkpoint(loop, "fork");
    loop->live.has_updated = has_updated;
    return err;
}

/* `bound` is set for the fork of an edit: subgraphs replay checkpoints from before the edit. */
static int continue_without_input(struct hd_loop *loop, const struct stand *s,
                                  char bound[HD_UUID_SIZE])
{
    struct hd_versions_seen *seen = &loop->live.seen[hd_versions_seen_interrupt(loop->graph)];
    int err = 0;

    seen->is_there = true;
    for (size_t i = 0; i < loop->graph->channel_count && !err; i++) {
        if (loop->live.versions[i])
            err = hd_versions_seen_put(seen, i, loop->live.versions[i]);
    }
    if (!err && s->forks) {
        if (is_edit(loop))
            memcpy(bound, loop->parent_id, HD_UUID_SIZE);
        err = fork_checkpoint(loop);
    }
    return err ? err : hd_loop_emit_values(loop);
}

/* An input ends unfinished work: the pending tasks count as run, without results. */
static int apply_input(struct hd_loop *loop, struct hd_val *input)
{
    struct hd_writes writes = {NULL, 0, 0};
    struct hd_tasks unfinished = {NULL, 0, 0};
    struct hd_applied *list = NULL;
    bool *updated = hd_calloc(loop->graph->channel_count, sizeof(*updated));
    int err = updated ? 0 : HD_ENOMEM;

    if (!err)
        err = hd_writes_add(&writes, (int)loop->graph->start_channel, hd_val_ref(input));
    if (!err)
        err = hd_tasks_prepare(&unfinished, &loop->live, hd_loop_ns(loop), loop->step, false);
    if (!err) {
        list = hd_calloc(unfinished.count + 1, sizeof(*list));
        err = list ? 0 : HD_ENOMEM;
    }
    if (!err) {
        for (size_t i = 0; i < unfinished.count; i++)
            list[i] = hd_task_applied(unfinished.list[i]);
        list[unfinished.count] =
            (struct hd_applied){.row = hd_versions_seen_input(loop->graph), .writes = &writes};
        err = hd_apply(&loop->live, list, unfinished.count + 1, true, updated, &loop->failure);
    }
    if (!err) {
        memcpy(loop->live.updated, updated, loop->graph->channel_count * sizeof(*updated));
        loop->live.has_updated = true;
        err = hd_loop_put_checkpoint(loop, "input");
    }
    hd_free(list);
    hd_free(updated);
    hd_tasks_fini(&unfinished);
    hd_writes_fini(&writes);
    return err;
}

/* ---- subgraphs -------------------------------------------------------- */

/* The root passes to its subgraphs whether the run resumes, and from which checkpoint. */
static int emit_subgraphs(struct hd_loop *loop, const struct stand *s, const char *bound)
{
    struct hd_replay *replay;
    const char *id = loop->live.id;

    if (loop->outer)
        return 0;
    loop->resuming = s->is_resuming;
    if (!s->is_travelling)
        return 0;
    if (bound[0])
        id = bound;
    else if (is_edit(loop) && loop->parent_id[0])
        id = loop->parent_id;
    replay = hd_calloc(1, sizeof(*replay));
    if (!replay)
        return HD_ENOMEM;
    replay->visited = hd_val_list();
    if (!replay->visited) {
        hd_free(replay);
        return HD_ENOMEM;
    }
    memcpy(replay->id, id, HD_UUID_SIZE);
    loop->run->replay = replay;
    return 0;
}

int hd_loop_apply_input(struct hd_loop *loop, struct hd_val *input, struct hd_val *command)
{
    struct stand s = {.input = hd_val_is_null(input) ? NULL : input, .command = command};
    char bound[HD_UUID_SIZE] = "";
    int err;

    if (!hd_checkpoint_state_any_updated(&loop->live))
        loop->live.has_updated = false; /* no updates: treat as not recorded */
    err = judge(loop, &s);
    /* An edit of the subgraph replaces its interrupts: the answer is for the next one. */
    if (!err && !is_edit(loop))
        err = hd_resume_check_parent(loop);
    if (s.is_travelling)
        hd_pending_writes_filter(&loop->pending_writes, is_resume, NULL);
    if (!loop->outer && loop->run->options.asks_again)
        hd_pending_writes_filter(&loop->pending_writes, is_old_answer, NULL);
    if (!err && command)
        err = apply_command(loop, &s);
    if (!err)
        err = apply_null_writes(loop, &s);
    if (!err && s.is_resuming) {
        err = continue_without_input(loop, &s, bound);
    } else if (!err && (s.input || command)) {
        /* On an empty thread the command is the input. */
        err = apply_input(loop, command ? command : s.input);
    } else if (!err && loop->resuming < 0) {
        hd_failure_set(&loop->failure, "EmptyInputError", "Received no input for %s", "__start__");
        err = HD_EINVAL;
    }
    if (!err)
        err = emit_subgraphs(loop, &s, bound);
    hd_writes_fini(&s.carried);
    return err;
}
