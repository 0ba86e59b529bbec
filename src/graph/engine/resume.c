/*
 * Resume values of interrupts. A task uses the values that it already received (its stored
 * __resume__ write), then the value for the id of its next interrupt, then the value without an id,
 * which the first interrupt takes. Subgraphs take the latter from their parent graphs.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/uuid.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"
#include "graph/engine/task_status.h"
#include "graph/engine/writes.h"
#include "value/val.h"

#define HASH_LEN 32

bool hd_is_interrupt_id(struct hd_slice text)
{
    if (text.len != HASH_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
            return false;
    }
    return true;
}

/* The id of a task's interrupt: a hash of its namespace and its number of resume values. */
static int question_id(const struct hd_task *task, size_t answered, char out[33])
{
    struct hd_buf ns;
    int err;

    hd_buf_init(&ns, (size_t)1 << 20);
    err = hd_task_ns(task, hd_loop_ns(task->loop), &ns);
    if (!err && answered > 0)
        err = hd_buf_printf(&ns, "|%zu", answered);
    if (!err)
        hd_hash_hex(hd_buf_slice(&ns), out);
    hd_buf_fini(&ns);
    return err;
}

/* *out is true if an interrupt of the task from before the run has this id. */
static int has_asked(const struct hd_task *task, const char *id, bool *out)
{
    struct hd_val *asked = hd_status_interrupts(&task->loop->pending_writes, task->id);
    int err = asked ? 0 : HD_ENOMEM;

    *out = false;
    for (size_t i = 0; i < hd_val_count(asked); i++)
        *out = *out || hd_slice_eq(hd_val_get_string(hd_val_get(hd_val_at(asked, i), HD_S("id"))),
                                   hd_slice_cstr(id));
    hd_val_unref(asked);
    return err;
}

/* *out is the map's value for the task's next interrupt, borrowed; NULL: none. */
static int find_in_map(const struct hd_task *task, const struct hd_val *map, struct hd_val **out)
{
    size_t answered = hd_val_count(task->resume);
    bool is_same;
    char id[33];
    int err = question_id(task, answered, id);

    *out = NULL;
    if (!err)
        *out = hd_val_get(map, hd_slice_cstr(id));
    /*
     * LangGraph, and earlier versions of the engine, give all interrupts of a task the id of the
     * first. That id counts only if the pending interrupt has it: otherwise the value is a repeated
     * reply to the first interrupt.
     */
    if (!err && !*out && answered > 0) {
        err = question_id(task, 0, id);
        if (!err)
            err = has_asked(task, id, &is_same);
        if (!err && is_same)
            *out = hd_val_get(map, hd_slice_cstr(id));
    }
    return err;
}

int hd_resume_prepare(struct hd_task *task)
{
    struct hd_loop *loop = task->loop;
    struct hd_val *answer = NULL;
    int err = 0;

    for (size_t i = 0; i < loop->pending_writes.count && !task->resume; i++) {
        const struct hd_pending_write *pending_write = &loop->pending_writes.list[i];

        if (pending_write->write.channel != HD_W_RESUME ||
            memcmp(pending_write->task, task->id, HD_UUID_LEN) != 0)
            continue;
        task->resume = hd_val_is_list(pending_write->write.val)
                           ? hd_val_ref(pending_write->write.val)
                           : hd_val_append(hd_val_list(), hd_val_ref(pending_write->write.val));
        if (!task->resume)
            return HD_ENOMEM;
    }
    if (loop->pending_writes.count > 0 && hd_val_count(loop->run->resume_map) > 0)
        err = find_in_map(task, loop->run->resume_map, &answer);
    if (!err && !task->resume)
        task->resume = hd_val_list();
    if (!err && answer && task->resume)
        task->resume = hd_val_append(task->resume, hd_val_ref(answer));
    return task->resume ? err : HD_ENOMEM;
}

static bool is_null_resume(const struct hd_pending_write *pending_write, const void *arg)
{
    (void)arg;
    return pending_write->write.channel == HD_W_RESUME && hd_is_null_task(pending_write->task);
}

/* True if the checkpoint has an interrupt with this id, of any task. */
static bool has_interrupt(const struct hd_pending_writes *pending_writes, struct hd_slice id)
{
    for (size_t i = 0; i < pending_writes->count; i++) {
        const struct hd_val *asked = pending_writes->list[i].write.val;
        size_t count = hd_val_is_list(asked) ? hd_val_count(asked) : 1;

        if (pending_writes->list[i].write.channel != HD_W_INTERRUPT)
            continue;
        for (size_t j = 0; j < count; j++) {
            const struct hd_val *one = hd_val_is_list(asked) ? hd_val_at(asked, j) : asked;

            if (hd_slice_eq(hd_val_get_string(hd_val_get(one, HD_S("id"))), id))
                return true;
        }
    }
    return false;
}

int hd_resume_check_parent(struct hd_loop *loop)
{
    struct hd_task *outer = loop->outer;
    struct hd_val *asked =
        outer ? hd_status_interrupts(&outer->loop->pending_writes, outer->id) : NULL;
    bool is_past;

    loop->is_answered = false;
    if (!outer)
        return 0;
    if (!asked)
        return HD_ENOMEM;
    is_past = loop->has_stored && hd_val_count(asked) > 0;
    for (size_t i = 0; i < hd_val_count(asked) && is_past; i++)
        is_past = !has_interrupt(&loop->pending_writes,
                                 hd_val_get_string(hd_val_get(hd_val_at(asked, i), HD_S("id"))));
    loop->is_answered = is_past;
    hd_val_unref(asked);
    return 0;
}

/* Takes the resume value without an id; NULL: no such value, or already used. */
static struct hd_val *take_null_resume(struct hd_loop *loop)
{
    bool was_used = false;

    while (!loop->null_resume) {
        if (!loop->outer)
            return NULL;
        was_used = was_used || loop->is_answered;
        loop = loop->outer->loop;
    }
    was_used = was_used || loop->null_resume_used;
    loop->null_resume_used = true;
    hd_pending_writes_filter(&loop->pending_writes, is_null_resume, NULL);
    return was_used ? NULL : loop->null_resume;
}

int hd_task_answer(struct hd_task *task, struct hd_val **out)
{
    size_t index = task->asked++;
    struct hd_val *answer;

    if (index < hd_val_count(task->resume)) {
        *out = hd_val_at(task->resume, index);
        return hd_writes_add(&task->writes, HD_W_RESUME, hd_val_slice(task->resume, 0, index + 1));
    }
    answer = take_null_resume(task->loop);
    if (!answer)
        return HD_ENOTFOUND;
    task->resume = hd_val_append(task->resume, hd_val_ref(answer));
    if (!task->resume)
        return HD_ENOMEM;
    *out = hd_val_at(task->resume, index);
    return hd_writes_add(&task->writes, HD_W_RESUME, hd_val_ref(task->resume));
}

struct hd_val *hd_task_question(struct hd_task *task, struct hd_val *value)
{
    char id[33];

    if (question_id(task, hd_val_count(task->resume), id) != 0) {
        hd_val_unref(value);
        return NULL;
    }
    return hd_val_interrupt(value, hd_slice_cstr(id));
}
