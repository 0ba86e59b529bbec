/*
 * Sources of tools: their kinds, and the open ones of a run.
 *
 * A source opens independently of tasks: tasks wait for a set of sources and may stop waiting.
 * Waiting tasks are resumed from the loop, never from within the source's call, so neither side
 * sees the other in an inconsistent state. A source that times out is ready with a problem; tools
 * that it adds later are ignored.
 */
#include "agent/source.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "agent/agent_internal.h"
#include "agent/exchange.h"
#include "base/alloc.h"
#include "base/list.h"
#include "base/log.h"
#include "base/vec.h"
#include "graph/engine/engine.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"
#include "secret/secret.h"

#define OPEN_MS 30000
#define MAX_SOURCES 1000 /* of a run */

/* One line here and in the table per kind of source; a kind is one file, source_<name>.c. */
extern const struct hd_source_kind hd_source_a2a;
extern const struct hd_source_kind hd_source_assistants;
extern const struct hd_source_kind hd_source_chroma;
extern const struct hd_source_kind hd_source_client;
extern const struct hd_source_kind hd_source_http;
extern const struct hd_source_kind hd_source_langconnect;
extern const struct hd_source_kind hd_source_mcp;

static const struct hd_source_kind *const source_kinds[] = {
    &hd_source_a2a,  &hd_source_assistants,  &hd_source_chroma, &hd_source_client,
    &hd_source_http, &hd_source_langconnect, &hd_source_mcp,
};

static const struct hd_source_kind *const *more_kinds;
static size_t more_kind_count;

struct hd_source_wait {
    uv_timer_t timer;
    bool is_woken;
    struct hd_agent_run *pool;
    struct hd_task *task;
    hd_source_wait_fn ready;
    void *ctx;
    HD_DLINK(struct hd_source_wait) all;
    size_t count;
    struct hd_tool_source *sources[];
};

/* ---- kinds ------------------------------------------------------------ */

void hd_source_kinds_add(const struct hd_source_kind *const *list, size_t count)
{
    more_kinds = list;
    more_kind_count = count;
}

static const struct hd_source_kind *kind_at(size_t index)
{
    size_t count = HD_COUNT(source_kinds);

    if (index < count)
        return source_kinds[index];
    return index - count < more_kind_count ? more_kinds[index - count] : NULL;
}

const char *hd_source_kind_name(size_t index)
{
    const struct hd_source_kind *kind = kind_at(index);

    return kind ? kind->name : NULL;
}

const struct hd_source_kind *hd_source_kind_find(struct hd_slice name)
{
    const struct hd_source_kind *kind;

    for (size_t i = 0; (kind = kind_at(i)); i++) {
        if (hd_slice_eq(hd_slice_cstr(kind->name), name))
            return kind;
    }
    return NULL;
}

/* ---- tools of a source ------------------------------------------------ */

static void free_tool(struct hd_tool *tool)
{
    hd_val_unref((struct hd_val *)(uintptr_t)tool->parameters);
    hd_free(tool);
}

static struct hd_val *no_parameters(void)
{
    struct hd_val *schema = hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("object"));

    return hd_val_with(schema, HD_S("properties"), hd_val_object());
}

/* The texts follow the tool, in the same allocation. */
static struct hd_tool *copy_tool(const struct hd_tool *tool)
{
    size_t size = tool->name.len + tool->description.len;
    struct hd_tool *copy = hd_malloc(sizeof(*copy) + size + 1);
    char *text = copy ? (char *)(copy + 1) : NULL;

    if (!copy)
        return NULL;
    *copy = *tool;
    if (tool->name.len > 0)
        memcpy(text, tool->name.ptr, tool->name.len);
    if (tool->description.len > 0)
        memcpy(text + tool->name.len, tool->description.ptr, tool->description.len);
    copy->name.ptr = text;
    copy->description.ptr = text + tool->name.len;
    copy->parameters =
        hd_val_is_object(tool->parameters) ? hd_val_ref(tool->parameters) : no_parameters();
    if (!copy->parameters) {
        hd_free(copy);
        return NULL;
    }
    return copy;
}

int hd_source_add(struct hd_tool_source *source, const struct hd_tool *tool)
{
    struct hd_tool *copy;

    if (source->is_ready)
        return 0;
    if (hd_array_grow(source->tools, source->tool_count, source->tool_cap) != 0)
        return HD_ENOMEM;
    copy = copy_tool(tool);
    if (!copy)
        return HD_ENOMEM;
    copy->source = source;
    source->tools[source->tool_count++] = copy;
    return 0;
}

static void free_source_timer(uv_handle_t *handle)
{
    hd_free(handle);
}

static void drop_timer(struct hd_tool_source *source)
{
    if (source->timer)
        uv_close((uv_handle_t *)source->timer, free_source_timer);
    source->timer = NULL;
}

static void free_tools(struct hd_tool_source *source)
{
    while (source->tool_count > 0)
        free_tool(source->tools[--source->tool_count]);
}

static void free_source(struct hd_tool_source *source)
{
    drop_timer(source);
    if (source->is_open)
        source->kind->close(source);
    free_tools(source);
    hd_free(source->tools);
    hd_free(source->problem);
    hd_val_unref(source->value);
    hd_free(source);
}

/* ---- state of a run --------------------------------------------------- */

static void free_wait(uv_handle_t *handle)
{
    hd_free(handle->data);
}

static void drop_wait(struct hd_source_wait *wait)
{
    hd_dlist_remove(wait, all);
    uv_close((uv_handle_t *)&wait->timer, free_wait);
}

static void hold_pool(struct hd_engine_run_extension *extension, bool is_held)
{
    hd_agent_exchanges_hold(((struct hd_agent_run *)extension)->exchanges, is_held);
}

static void free_pool(struct hd_engine_run_extension *extension)
{
    struct hd_agent_run *pool = (struct hd_agent_run *)extension;

    while (pool->waits)
        drop_wait(pool->waits);
    hd_toolset_kept_free(pool->sets);
    while (pool->sources) {
        struct hd_tool_source *source = pool->sources;

        pool->sources = source->next;
        free_source(source);
    }
    hd_free(pool);
}

struct hd_agent_run *hd_agent_run_of(struct hd_engine_run *run)
{
    struct hd_agent_run *pool = (struct hd_agent_run *)run->extension;

    if (pool)
        return pool;
    pool = hd_calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    pool->run = run;
    pool->base.free = free_pool;
    pool->base.hold = hold_pool;
    run->extension = &pool->base;
    return pool;
}

/* ---- opening ---------------------------------------------------------- */

static void on_wait_wake(uv_timer_t *timer);

static void wake_if_ready(struct hd_source_wait *wait)
{
    for (size_t i = 0; i < wait->count; i++) {
        if (!wait->sources[i]->is_ready)
            return;
    }
    if (!wait->is_woken)
        uv_timer_start(&wait->timer, on_wait_wake, 0, 0);
    wait->is_woken = true;
}

void hd_source_ready(struct hd_tool_source *source, const char *problem)
{
    struct hd_agent_run *pool = (struct hd_agent_run *)source->run->extension;

    if (source->is_ready)
        return;
    source->is_ready = true;
    drop_timer(source);
    if (problem) {
        size_t size = strlen(problem) + 1;

        hd_log(HD_LOG_WARN, "agent", "tools of %s: %s", source->kind->name, problem);
        source->problem = hd_malloc(size);
        if (source->problem)
            memcpy(source->problem, problem, size);
    }
    for (struct hd_source_wait *wait = pool ? pool->waits : NULL; wait; wait = wait->all.next)
        wake_if_ready(wait);
}

static void on_open_limit(uv_timer_t *timer)
{
    struct hd_tool_source *source = timer->data;
    char text[128];

    (void)snprintf(text, sizeof(text), "not ready after %.3g s",
                   (double)uv_timer_get_repeat(timer) / 1e3);
    hd_source_ready(source, text);
}

static int limit_opening(struct hd_tool_source *source)
{
    uv_timer_t *timer = hd_calloc(1, sizeof(*timer));
    uint64_t ms = source->kind->open_ms > 0 ? (uint64_t)source->kind->open_ms : OPEN_MS;
    uv_loop_t *uv = source->run->engine->uv;

    if (!timer)
        return HD_ENOMEM;
    uv_timer_init(uv, timer);
    timer->data = source;
    source->timer = timer;
    /* The loop's cached time may be old after a long computation. */
    uv_update_time(uv);
    uv_timer_start(timer, on_open_limit, ms, ms);
    return 0;
}

/* The value of a marker may be invalid: the check sees it only after revealing. */
static void explain(const struct hd_tool_source *source, struct heddle_error *fault)
{
    struct hd_val *value = hd_secrets_reveal(source->value, source->run->options.secrets);

    if (value && source->kind->check && source->kind->check(value, fault) == 0)
        *fault = (struct heddle_error){0};
    hd_val_unref(value);
}

static void open_checked_source(struct hd_tool_source *source)
{
    struct heddle_error fault = {0};
    int err = source->kind->check ? source->kind->check(source->value, &fault) : 0;

    if (!err)
        err = limit_opening(source);
    if (!err) {
        source->is_open = true;
        err = source->kind->open(source);
    }
    if (err == HD_EINVAL && !fault.text[0])
        explain(source, &fault);
    if (err) {
        source->is_open = false;
        free_tools(source); /* they cannot be called */
        hd_source_ready(source, fault.text[0] ? fault.text : hd_error_text(err));
    }
}

int hd_source_get(struct hd_engine_run *run, const struct hd_source_kind *kind,
                  const struct hd_val *value, struct hd_tool_source **out)
{
    struct hd_agent_run *pool = hd_agent_run_of(run);
    struct hd_tool_source *source = pool ? pool->sources : NULL;

    if (!pool)
        return HD_ENOMEM;
    for (; source; source = source->next) {
        if (source->kind == kind && hd_val_equal(source->value, value)) {
            *out = source;
            return 0;
        }
    }
    if (pool->source_count >= MAX_SOURCES)
        return HD_ELIMIT;
    source = hd_calloc(1, sizeof(*source));
    if (!source)
        return HD_ENOMEM;
    source->kind = kind;
    source->value = hd_val_ref(value);
    source->run = run;
    source->next = pool->sources;
    pool->sources = source;
    pool->source_count++;
    open_checked_source(source);
    *out = source;
    return 0;
}

/* ---- waiting ---------------------------------------------------------- */

static void report_problem(struct hd_task *task, struct hd_tool_source *source)
{
    struct hd_val *event =
        hd_val_with(hd_val_object(), HD_S("type"), hd_val_cstr("tool_source_problem"));

    source->is_reported = true;
    event = hd_val_with(event, HD_S("source"), hd_val_cstr(source->kind->name));
    event = hd_val_with(event, HD_S("message"), hd_val_cstr(source->problem));
    if (event)
        hd_task_emit(task, event);
    hd_val_unref(event);
}

static void on_wait_wake(uv_timer_t *timer)
{
    struct hd_source_wait *wait = timer->data;
    hd_source_wait_fn ready = wait->ready;
    void *ctx = wait->ctx;

    for (size_t i = 0; i < wait->count; i++) {
        if (wait->sources[i]->problem && !wait->sources[i]->is_reported)
            report_problem(wait->task, wait->sources[i]);
    }
    drop_wait(wait);
    ready(ctx);
}

int hd_source_wait(struct hd_task *task, struct hd_tool_source *const *list, size_t count,
                   hd_source_wait_fn ready, void *ctx, struct hd_source_wait **out)
{
    struct hd_agent_run *pool = hd_agent_run_of(task->loop->run);
    struct hd_source_wait *wait;

    if (!pool)
        return HD_ENOMEM;
    wait = hd_calloc(1, sizeof(*wait) + count * sizeof(struct hd_tool_source *));
    if (!wait)
        return HD_ENOMEM;
    if (count > 0)
        memcpy(wait->sources, list, count * sizeof(struct hd_tool_source *));
    wait->count = count;
    wait->pool = pool;
    wait->task = task;
    wait->ready = ready;
    wait->ctx = ctx;
    uv_timer_init(task->loop->run->engine->uv, &wait->timer);
    wait->timer.data = wait;
    hd_dlist_insert(&pool->waits, wait, all);
    wake_if_ready(wait);
    *out = wait;
    return 0;
}

void hd_source_wait_cancel(struct hd_source_wait *wait)
{
    drop_wait(wait);
}
