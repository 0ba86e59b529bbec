/*
 * Conversations as text. The comparison covers all visible data: the threads, every checkpoint with
 * all its values and writes, the latest one, and the number of rows of a thread (which shows writes
 * that wait for their checkpoint).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "model.h"

static const char *const namespaces[] = {"", "sub|1"};

static void dump_bytes(FILE *out, const void *data, size_t len)
{
    XXH128_hash_t hash = XXH3_128bits(data, len);

    (void)fprintf(out, " %zu %016llx%016llx\n", len, (unsigned long long)hash.high64,
                  (unsigned long long)hash.low64);
}

static void dump_head(FILE *out, bool exists, const char *const latest[2])
{
    (void)fprintf(out, "exists %d\n", exists);
    for (size_t i = 0; i < 2; i++)
        (void)fprintf(out, "latest of '%s' is '%s'\n", namespaces[i], latest[i]);
}

/* ---- the model ---- */

static void dump_point(FILE *out, const struct conv *conv, const struct point *point)
{
    char checkpoint[512], metadata[128];

    write_checkpoint(point, checkpoint, sizeof(checkpoint));
    write_metadata(point, metadata, sizeof(metadata));
    (void)fprintf(out, "checkpoint '%s' %s parent '%s' %s %s\n", point->ns, point->id,
                  point->parent, checkpoint, metadata);
    /* In byte order of channel. */
    static const int order[CHANNELS] = {2, 1, 0, 3};
    for (int n = 0; n < CHANNELS; n++) {
        const struct slot *slot = &point->slots[order[n]];

        if (!slot->value)
            continue;
        (void)fprintf(out, "    %s %s", channel_name(order[n]), channel_type(order[n]));
        dump_bytes(out, slot->value->data, slot->value->len);
    }
    for (size_t i = 0; i < conv->note_count; i++) {
        const struct note *note = &conv->notes[i];

        if (strcmp(note->ns, point->ns) != 0 || strcmp(note->id, point->id) != 0)
            continue;
        (void)fprintf(out, "    write %s ~path %d %s %s", note->task, note->idx,
                      channel_name(note->channel), channel_type(note->channel));
        dump_bytes(out, note->value->data, note->value->len);
    }
}

static const char *latest_of(const struct conv *conv, const char *ns)
{
    for (size_t i = conv->point_count; i > 0; i--) {
        if (strcmp(conv->points[i - 1].ns, ns) == 0)
            return conv->points[i - 1].id;
    }
    return "";
}

char *dump_model(const struct worker *worker, unsigned number)
{
    const struct conv *conv = &worker->convs[number];
    const char *latest[2] = {latest_of(conv, ""), latest_of(conv, "sub|1")};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        abort();
    if (!conv->is_shared) {
        dump_head(out, conv->exists, latest);
        (void)fprintf(out, "%zu checkpoints, %zu writes\n", conv->point_count, conv->note_count);
    }
    for (size_t i = conv->point_count; i > 0; i--)
        dump_point(out, conv, &conv->points[i - 1]);
    (void)fclose(out);
    return text;
}

/* ---- the store ---- */

static struct heddle_bytes text_of(const char *s)
{
    return (struct heddle_bytes){s, strlen(s)};
}

static int find_thread(struct heddle *store, const char *id, bool *exists,
                       struct heddle_error *error)
{
    struct heddle_threads *threads;
    int err = heddle_list_threads(store, (struct heddle_bytes){0}, (struct heddle_bytes){0}, 1000,
                                  &threads, error);

    if (err)
        return err;
    *exists = false;
    for (size_t i = 0; i < threads->count; i++) {
        struct heddle_bytes got = threads->threads[i].thread.id;

        *exists = *exists || (got.len == strlen(id) && memcmp(got.data, id, got.len) == 0);
    }
    heddle_threads_free(threads);
    return 0;
}

static int dump_summary(FILE *out, const struct worker *worker, const struct conv *conv,
                        struct heddle *store, struct heddle_error *error)
{
    struct heddle_thread thread = {.id = text_of(conv->thread)};
    struct heddle_usage usage;
    char latest[2][40] = {"", ""};
    const char *const names[2] = {latest[0], latest[1]};
    bool exists;
    int err = find_thread(store, conv->thread, &exists, error);

    for (size_t i = 0; !err && i < 2; i++) {
        struct heddle_key key = {.thread = thread, .ns = text_of(namespaces[i])};
        struct heddle_tuple *tuple;

        err = heddle_get(store, &key, &tuple, error);
        if (!err) {
            (void)snprintf(latest[i], sizeof(latest[i]), "%.*s", (int)tuple->id.len,
                           (const char *)tuple->id.data);
            heddle_tuple_free(tuple);
        }
        err = err == HEDDLE_ENOTFOUND ? 0 : err;
    }
    if (!err)
        err = heddle_thread_usage(store, &thread, &usage, error);
    if (err)
        return err;
    dump_head(out, exists, names);
    (void)fprintf(out, "%lld checkpoints, %lld writes\n", (long long)usage.checkpoints,
                  (long long)usage.writes);
    /* A copy in several batches that died leaves chunks, which the next user of the thread owns. */
    if (!exists && usage.chunks > 0 && !worker->is_big)
        (void)fprintf(out, "%lld chunks of no thread\n", (long long)usage.chunks);
    return 0;
}

static void dump_text(FILE *out, struct heddle_bytes bytes)
{
    (void)fprintf(out, "%.*s", (int)bytes.len, bytes.len ? (const char *)bytes.data : "");
}

static void dump_tuple(FILE *out, const struct heddle_tuple *tuple)
{
    (void)fprintf(out, "checkpoint '");
    dump_text(out, tuple->ns);
    (void)fprintf(out, "' ");
    dump_text(out, tuple->id);
    (void)fprintf(out, " parent '");
    dump_text(out, tuple->parent);
    (void)fprintf(out, "' ");
    dump_text(out, tuple->checkpoint);
    (void)fprintf(out, " ");
    dump_text(out, tuple->metadata);
    (void)fprintf(out, "\n");
    for (size_t i = 0; i < tuple->value_count; i++) {
        const struct heddle_value *value = &tuple->values[i];

        (void)fprintf(out, "    ");
        dump_text(out, value->channel);
        (void)fprintf(out, " ");
        dump_text(out, value->type);
        dump_bytes(out, value->data.data, value->data.len);
    }
    for (size_t i = 0; i < tuple->write_count; i++) {
        const struct heddle_write *write = &tuple->writes[i];

        (void)fprintf(out, "    write ");
        dump_text(out, write->task_id);
        (void)fprintf(out, " ");
        dump_text(out, write->task_path);
        (void)fprintf(out, " %lld ", (long long)write->idx);
        dump_text(out, write->value.channel);
        (void)fprintf(out, " ");
        dump_text(out, write->value.type);
        dump_bytes(out, write->value.data.data, write->value.data.len);
    }
}

static int dump_tuples(FILE *out, const struct worker *worker, const struct conv *conv,
                       struct heddle *store, struct heddle_error *error)
{
    struct heddle_bytes thread = text_of(conv->thread);
    struct heddle_query query = {.thread = &thread, .limit = -1};
    const struct heddle_tuple *tuple;
    struct heddle_list *list;
    int err = heddle_list_open(store, &query, &list, error);

    if (err)
        return err;
    while (!err) {
        err = heddle_list_next(list, &tuple, error);
        if (!err && (!conv->is_shared || *(const char *)tuple->id.data == worker->tag))
            dump_tuple(out, tuple);
    }
    heddle_list_close(list);
    return err == HEDDLE_ENOTFOUND ? 0 : err;
}

char *dump_store(const struct worker *worker, unsigned number, struct heddle *store,
                 struct heddle_error *error)
{
    const struct conv *conv = &worker->convs[number];
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int err = 0;

    if (!out)
        abort();
    if (!conv->is_shared)
        err = dump_summary(out, worker, conv, store, error);
    if (!err)
        err = dump_tuples(out, worker, conv, store, error);
    (void)fclose(out);
    if (err) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- comparing ---- */

void dump_diff(const char *wanted, const char *got)
{
    while (*wanted || *got) {
        size_t a = strcspn(wanted, "\n"), b = strcspn(got, "\n");

        if (a != b || memcmp(wanted, got, a) != 0) {
            (void)fprintf(stderr, "    wanted: %.*s\n    found:  %.*s\n", (int)a, wanted, (int)b,
                          got);
            return;
        }
        wanted += a + (wanted[a] == '\n');
        got += b + (got[b] == '\n');
    }
}
