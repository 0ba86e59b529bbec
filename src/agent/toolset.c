/*
 * The tools of a node in a run. A set is created once per list of sources and kept with the run: a
 * model's task and the tasks that call its tools see the same names.
 */
#include "agent/toolset.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/source.h"
#include "agent/tools.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "graph/engine/loop.h"
#include "graph/engine/task.h"

struct hd_toolset_kept {
    const struct hd_node *node;
    struct hd_tool_source **sources;
    size_t source_count;
    struct hd_toolset set;
    char (*names)[HD_TOOL_MAX_NAME + 1];
    struct hd_toolset_kept *next;
};

struct hd_toolset_wait {
    struct hd_task *task;
    const struct hd_node *node;
    hd_toolset_fn ready;
    void *ctx;
    struct hd_source_wait *wait;
    size_t count;
    struct hd_tool_source *sources[];
};

/* ---- names ------------------------------------------------------------ */

static bool is_fit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
}

/* A multibyte character becomes one `_`. */
static size_t make_fit(struct hd_slice name, char out[HD_TOOL_MAX_NAME + 1])
{
    size_t len = 0;

    for (size_t i = 0; i < name.len && len < HD_TOOL_MAX_NAME; i++) {
        if (is_fit(name.ptr[i]))
            out[len++] = name.ptr[i];
        else if (((unsigned char)name.ptr[i] & 0xC0) != 0x80)
            out[len++] = '_';
    }
    if (len == 0) {
        memcpy(out, "tool", 4);
        len = 4;
    }
    out[len] = '\0';
    return len;
}

static int name_tool(struct hd_map *taken, struct hd_slice name, char out[HD_TOOL_MAX_NAME + 1])
{
    size_t len = make_fit(name, out);
    char suffix[24] = "";

    for (unsigned number = 2; hd_map_get(taken, hd_slice_cstr(out)); number++) {
        size_t room = HD_TOOL_MAX_NAME - (size_t)snprintf(suffix, sizeof(suffix), "-%u", number);

        if (len > room)
            len = room;
        memcpy(out + len, suffix, strlen(suffix) + 1);
    }
    return hd_map_put(taken, hd_slice_cstr(out), out);
}

/* ---- making ----------------------------------------------------------- */

static void free_kept(struct hd_toolset_kept *kept)
{
    hd_free(kept->sources);
    hd_free(kept->set.entries);
    hd_free(kept->names);
    hd_free(kept);
}

void hd_toolset_kept_free(struct hd_toolset_kept *sets)
{
    while (sets) {
        struct hd_toolset_kept *next = sets->next;

        free_kept(sets);
        sets = next;
    }
}

static size_t count_tools(const struct hd_toolset_wait *wait)
{
    size_t count = 0;

    for (size_t i = 0; i < wait->count; i++)
        count += wait->sources[i]->tool_count;
    if (count > HD_TOOL_MAX_TOOLS)
        hd_log(HD_LOG_WARN, "agent", "%zu tools are left out: a node has at most %d",
               count - HD_TOOL_MAX_TOOLS, HD_TOOL_MAX_TOOLS);
    return count < HD_TOOL_MAX_TOOLS ? count : HD_TOOL_MAX_TOOLS;
}

static int fill_toolset(struct hd_toolset_kept *kept, size_t count)
{
    struct hd_map taken;
    int err = 0;

    hd_map_init(&taken, HD_TOOL_MAX_TOOLS);
    for (size_t i = 0; i < kept->source_count && !err; i++) {
        const struct hd_tool_source *source = kept->sources[i];

        for (size_t j = 0; j < source->tool_count && kept->set.count < count && !err; j++) {
            size_t index = kept->set.count++;

            err = name_tool(&taken, source->tools[j]->name, kept->names[index]);
            kept->set.entries[index] =
                (struct hd_toolset_entry){hd_slice_cstr(kept->names[index]), source->tools[j]};
        }
    }
    hd_map_fini(&taken);
    return err;
}

static struct hd_toolset_kept *make_set(const struct hd_toolset_wait *wait)
{
    struct hd_toolset_kept *kept = hd_calloc(1, sizeof(*kept));
    size_t count = count_tools(wait);

    if (!kept)
        return NULL;
    kept->node = wait->node;
    kept->sources = hd_calloc(wait->count + 1, sizeof(struct hd_tool_source *));
    kept->set.entries = hd_calloc(count + 1, sizeof(*kept->set.entries));
    kept->names = hd_calloc(count + 1, sizeof(*kept->names));
    if (!kept->sources || !kept->set.entries || !kept->names) {
        free_kept(kept);
        return NULL;
    }
    if (wait->count > 0)
        memcpy(kept->sources, wait->sources, wait->count * sizeof(struct hd_tool_source *));
    kept->source_count = wait->count;
    if (fill_toolset(kept, count) != 0) {
        free_kept(kept);
        return NULL;
    }
    return kept;
}

/* Equal values are one source, so comparing sources is enough. */
static bool is_of(const struct hd_toolset_kept *kept, const struct hd_toolset_wait *wait)
{
    return kept->node == wait->node && kept->source_count == wait->count &&
           (wait->count == 0 || memcmp(kept->sources, wait->sources,
                                       wait->count * sizeof(struct hd_tool_source *)) == 0);
}

static const struct hd_toolset *find_or_make(const struct hd_toolset_wait *wait)
{
    struct hd_agent_run *pool = hd_agent_run_of(wait->task->loop->run);
    struct hd_toolset_kept *kept = pool ? pool->sets : NULL;

    while (kept && !is_of(kept, wait))
        kept = kept->next;
    if (!kept && pool) {
        kept = make_set(wait);
        if (kept) {
            kept->next = pool->sets;
            pool->sets = kept;
        }
    }
    return kept ? &kept->set : NULL;
}

/* ---- asking for it ---------------------------------------------------- */

static void on_sources_ready(void *ctx)
{
    struct hd_toolset_wait *wait = ctx;
    const struct hd_toolset *set = find_or_make(wait);
    hd_toolset_fn ready = wait->ready;
    void *arg = wait->ctx;

    hd_free(wait);
    ready(arg, set);
}

/* A null value has no tools. */
static int get_sources(struct hd_task *task, const struct hd_tools_spec *spec,
                       struct hd_toolset_wait *wait)
{
    struct hd_scope scope = hd_task_scope(task);
    int err = 0;

    for (size_t i = 0; i < spec->sources.count && !err; i++) {
        struct hd_val *value;

        err = hd_expr_eval(spec->sources.list[i].value, &scope, &value);
        if (err)
            break;
        if (!hd_val_is_null(value))
            err = hd_source_get(task->loop->run, spec->sources.list[i].kind, value,
                                &wait->sources[wait->count++]);
        hd_val_unref(value);
    }
    return err;
}

int hd_toolset_get(struct hd_task *task, const struct hd_node *tools, hd_toolset_fn ready,
                   void *ctx, struct hd_toolset_wait **out)
{
    const struct hd_tools_spec *spec = tools->spec;
    struct hd_toolset_wait *wait;
    int err;

    if (tools->kind != &hd_node_tools)
        return HD_EINVAL;
    wait = hd_calloc(1, sizeof(*wait) + spec->sources.count * sizeof(struct hd_tool_source *));
    if (!wait)
        return HD_ENOMEM;
    wait->task = task;
    wait->node = tools;
    wait->ready = ready;
    wait->ctx = ctx;
    err = get_sources(task, spec, wait);
    if (!err)
        err = hd_source_wait(task, wait->sources, wait->count, on_sources_ready, wait, &wait->wait);
    if (err) {
        hd_free(wait);
        return err;
    }
    *out = wait;
    return 0;
}

void hd_toolset_cancel(struct hd_toolset_wait *wait)
{
    hd_source_wait_cancel(wait->wait);
    hd_free(wait);
}

const struct hd_tool *hd_toolset_find(const struct hd_toolset *set, struct hd_slice name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (hd_slice_eq(set->entries[i].name, name))
            return set->entries[i].tool;
    }
    return NULL;
}
