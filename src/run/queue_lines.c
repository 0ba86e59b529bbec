#include "run/queue_lines.h"

#include <string.h>

#include "base/alloc.h"
#include "config/config.h"

static bool make_thread_key(struct hd_slice principal, struct hd_slice thread, struct hd_buf *room,
                            struct hd_slice *key)
{
    hd_buf_reset(room);
    if (hd_buf_append_slice(room, principal) || hd_buf_append_byte(room, ':') ||
        hd_buf_append_slice(room, thread))
        return false;
    *key = hd_buf_slice(room);
    return true;
}

struct hd_thread_queue *hd_queue_lines_thread(struct hd_queue *queue, struct hd_slice principal,
                                              struct hd_slice thread)
{
    struct hd_slice key;

    return make_thread_key(principal, thread, &queue->scratch, &key)
               ? hd_map_get(&queue->thread_queues, key)
               : NULL;
}

static struct hd_thread_queue *get_thread_queue(struct hd_queue *queue, struct hd_slice principal,
                                                struct hd_slice thread)
{
    struct hd_thread_queue *thread_queue = hd_queue_lines_thread(queue, principal, thread);
    struct hd_slice key = hd_buf_slice(&queue->scratch);

    if (thread_queue)
        return thread_queue;
    thread_queue = hd_calloc(1, sizeof(*thread_queue) + key.len);
    if (!thread_queue || hd_map_put(&queue->thread_queues, key, thread_queue)) {
        hd_free(thread_queue);
        return NULL;
    }
    thread_queue->queue = queue;
    thread_queue->key_len = key.len;
    memcpy(thread_queue->key, key.ptr, key.len);
    return thread_queue;
}

static void drop_thread_queue(struct hd_thread_queue *thread_queue)
{
    hd_map_remove(&thread_queue->queue->thread_queues,
                  hd_slice(thread_queue->key, thread_queue->key_len));
    hd_free(thread_queue);
}

bool hd_queue_lines_are_parallel(const struct hd_queue *queue)
{
    return queue->app->config->namespaces_parallel;
}

struct hd_line_queue *hd_queue_lines_find(const struct hd_thread_queue *thread_queue,
                                          struct hd_slice ns)
{
    struct hd_line_queue *line = thread_queue ? thread_queue->first : NULL;

    while (line && hd_queue_lines_are_parallel(thread_queue->queue) &&
           !hd_slice_eq(hd_slice(line->ns, line->ns_len), ns))
        line = line->next;
    return line;
}

/* A new thread queue without lines is removed again. */
struct hd_line_queue *hd_queue_lines_get(struct hd_queue *queue, struct hd_slice principal,
                                         struct hd_slice thread, struct hd_slice ns)
{
    struct hd_thread_queue *thread_queue = get_thread_queue(queue, principal, thread);
    struct hd_line_queue *line = hd_queue_lines_find(thread_queue, ns);

    if (line || !thread_queue)
        return line;
    line = hd_calloc(1, sizeof(*line) + ns.len);
    if (!line) {
        if (!thread_queue->first)
            drop_thread_queue(thread_queue);
        return NULL;
    }
    line->thread_queue = thread_queue;
    line->ns_len = ns.len;
    if (ns.len > 0)
        memcpy(line->ns, ns.ptr, ns.len);
    line->next = thread_queue->first;
    thread_queue->first = line;
    return line;
}

/* Names of lines contain no control characters. */
#define BRANCH_MARK '\x1f'

int hd_queue_lines_name(const struct hd_queue *queue, const struct hd_run_rec *run,
                        struct hd_slice ns, struct hd_arena *arena, struct hd_slice *out)
{
    char *name;

    *out = ns;
    if (!run->is_off_head || !hd_queue_lines_are_parallel(queue))
        return 0;
    name = hd_arena_printf(arena, "%.*s%c%.*s", (int)ns.len, ns.ptr ? ns.ptr : "", BRANCH_MARK,
                           (int)run->run_id.len, run->run_id.ptr);
    *out = hd_slice_cstr(name);
    return name ? 0 : HD_ENOMEM;
}

static bool is_branch_of(const struct hd_line_queue *line, struct hd_slice ns)
{
    return line->ns_len > ns.len && line->ns[ns.len] == BRANCH_MARK &&
           hd_slice_starts(hd_slice(line->ns, line->ns_len), ns);
}

struct hd_line_queue *hd_queue_lines_busy_branch(const struct hd_thread_queue *thread_queue,
                                                 struct hd_slice ns)
{
    struct hd_line_queue *line = thread_queue ? thread_queue->first : NULL;

    while (line && !(line->is_busy && is_branch_of(line, ns)))
        line = line->next;
    return line;
}

bool hd_queue_lines_are_visited(const struct hd_line_queue *line)
{
    const struct hd_line_queue *other = line->thread_queue->first;

    if (line->visitors > 0)
        return true;
    while (other &&
           !(other->visitors > 0 && is_branch_of(line, hd_slice(other->ns, other->ns_len))))
        other = other->next;
    return other != NULL;
}

void hd_queue_lines_drop(struct hd_line_queue *line)
{
    struct hd_thread_queue *thread_queue = line->thread_queue;
    struct hd_line_queue **link = &thread_queue->first;

    if (line->first || line->visitors > 0 || line->is_ready)
        return;
    while (*link != line)
        link = &(*link)->next;
    *link = line->next;
    hd_free(line);
    if (!thread_queue->first)
        drop_thread_queue(thread_queue);
}

struct hd_active_run *hd_queue_lines_run(struct hd_queue *queue, struct hd_slice principal,
                                         struct hd_slice thread, struct hd_slice run_id)
{
    struct hd_thread_queue *thread_queue = hd_queue_lines_thread(queue, principal, thread);
    struct hd_line_queue *line = thread_queue ? thread_queue->first : NULL;

    for (; line; line = line->next) {
        for (struct hd_active_run *active = line->first; active; active = active->next) {
            if (hd_slice_eq(active->rec.run_id, run_id))
                return active;
        }
    }
    return NULL;
}
