/*
 * Runs the steps of savers.py in the core only: replays the bytes that a saver passes to libheddle,
 * so that the figures exclude the serializers of the languages.
 *
 *   bench-replay URL MESSAGES       one line of JSON, keys as savers.py prints them
 *
 * Messages are in the canonical encoding, 500 bytes of text each. `put_mb_per_s` is the channel
 * bytes per second of put; `fixed_us` and `pass_mb_per_s` are a least-squares line through (bytes,
 * time) of all puts: the part that does not depend on the length of the history, and the speed of
 * the pass.
 */
#include <heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE 4096

struct line {
    double n, x, y, xx, xy;
};

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct heddle_bytes text(const char *s)
{
    return (struct heddle_bytes){s, strlen(s)};
}

static void die(const struct heddle_error *error)
{
    fprintf(stderr, "replay: %s\n", error->text);
    exit(1);
}

/* One message with 500 bytes of words, without the separator before it. */
static size_t write_message(char *out, int step)
{
    static const char *const words[] = {"the",    "agent", "said",  "that",   "it",
                                        "would",  "look",  "for",   "a",      "better",
                                        "answer", "when",  "tools", "return", "what"};
    int len = snprintf(out, LINE, "{\"$\":\"message\",\"type\":\"%s\",\"content\":\"",
                       step % 2 ? "ai" : "human");
    int end = len + 500;

    while (len < end) {
        int more = rand() % 5 ? snprintf(out + len, LINE - (size_t)len, "%s ",
                                         words[(size_t)rand() % (sizeof(words) / sizeof(*words))])
                              : snprintf(out + len, LINE - (size_t)len, "%d ", rand() % 1000000);

        len += more;
    }
    len = end;
    len += snprintf(out + len, LINE - (size_t)len, "\",\"id\":\"%08x-0000-4000-8000-%012x\"}",
                    rand(), step);
    return (size_t)len;
}

struct session {
    struct heddle *store;
    struct heddle_thread thread;
    char id[40], parent[40];
    char *messages; /* the whole list, with its closing bracket */
    size_t len, cap;
    char message[LINE];
    size_t message_len;
    double spent;
    struct line line;
};

static void append_message(struct session *s, int step)
{
    s->message_len = write_message(s->message, step);
    if (s->len + s->message_len + 2 > s->cap) {
        s->cap = (s->cap + s->message_len + 2) * 2;
        s->messages = realloc(s->messages, s->cap);
        if (!s->messages)
            exit(1);
    }
    s->messages[s->len ? s->len - 1 : 0] = s->len ? ',' : '[';
    s->len += s->len ? 0 : 1;
    memcpy(s->messages + s->len, s->message, s->message_len);
    s->len += s->message_len;
    s->messages[s->len++] = ']';
}

static void put(struct session *s, int step)
{
    char checkpoint[LINE], metadata[256], changed[512], count[16];
    struct heddle_error error = {0};
    const char *v = "%032d.0.%016d";
    char version[64], first[64];

    snprintf(version, sizeof(version), v, step + 1, rand());
    snprintf(first, sizeof(first), v, 1, 1);
    snprintf(s->id, sizeof(s->id), "1f0%05x-0000-6000-8%03x-%012x", step, step & 0xfff, step);
    snprintf(checkpoint, sizeof(checkpoint),
             "{\"v\":4,\"id\":\"%s\",\"ts\":\"2026-01-01T00:00:00.000000+00:00\","
             "\"channel_versions\":{\"messages\":\"%s\",\"topic\":\"%s\",\"count\":\"%s\","
             "\"limits\":\"%s\"},"
             "\"versions_seen\":{\"agent\":{\"messages\":\"%s\"}},\"updated_channels\":null}",
             s->id, version, first, version, first, version);
    snprintf(metadata, sizeof(metadata), "{\"source\":\"loop\",\"step\":%d,\"parents\":{}}", step);
    snprintf(changed, sizeof(changed), "{\"messages\":\"%s\",\"count\":\"%s\"%s%s%s%s%s}", version,
             version, step ? "" : ",\"topic\":\"", step ? "" : first,
             step ? "" : "\",\"limits\":\"", step ? "" : first, step ? "" : "\"");
    snprintf(count, sizeof(count), "%d", step);
    struct heddle_value values[] = {
        {text("messages"), text("hd1"), {s->messages, s->len}},
        {text("count"), text("hd1"), text(count)},
        {text("topic"), text("hd1"), text("\"trains\"")},
        {text("limits"), text("hd1"), text("{\"tools\":3}")},
    };
    struct heddle_checkpoint in = {.thread = s->thread,
                                   .id = text(s->id),
                                   .parent = text(s->parent),
                                   .checkpoint = text(checkpoint),
                                   .metadata = text(metadata),
                                   .new_versions = text(changed),
                                   .values = values,
                                   .value_count = 4};
    double start = now_us(), took;

    if (heddle_put(s->store, &in, &error))
        die(&error);
    took = now_us() - start;
    s->spent += took;
    s->line.n++;
    s->line.x += (double)s->len;
    s->line.y += took;
    s->line.xx += (double)s->len * (double)s->len;
    s->line.xy += (double)s->len * took;
    memcpy(s->parent, s->id, sizeof(s->id));
}

static void put_write(struct session *s, int task, const char *channel, const char *data,
                      size_t len)
{
    char task_id[40];
    struct heddle_error error = {0};
    struct heddle_value value = {text(channel), text("hd1"), {data, len}};
    struct heddle_writes in = {.thread = s->thread,
                               .checkpoint_id = text(s->id),
                               .task_path = text("~agent"),
                               .values = &value,
                               .value_count = 1};
    double start;

    snprintf(task_id, sizeof(task_id), "00000000-0000-0000-0000-%012d", task);
    in.task_id = text(task_id);
    start = now_us();
    if (heddle_put_writes(s->store, &in, &error))
        die(&error);
    s->spent += now_us() - start;
}

static double best_get_us(struct session *s, const char *id)
{
    struct heddle_key key = {.thread = s->thread, .id = text(id)};
    double best = 1e12;

    for (int i = 0; i < 15; i++) {
        struct heddle_error error = {0};
        struct heddle_tuple *tuple;
        double start = now_us(), took;

        if (heddle_get(s->store, &key, &tuple, &error))
            die(&error);
        heddle_tuple_free(tuple);
        took = now_us() - start;
        best = took < best ? took : best;
    }
    return best;
}

static double best_list_us(struct session *s)
{
    struct heddle_bytes ns = {"", 0};
    struct heddle_query query = {.thread = &s->thread.id, .ns = &ns, .limit = 10};
    double best = 1e12;

    for (int i = 0; i < 7; i++) {
        struct heddle_error error = {0};
        const struct heddle_tuple *tuple;
        struct heddle_list *list;
        double start = now_us(), took;

        if (heddle_list_open(s->store, &query, &list, &error))
            die(&error);
        while (heddle_list_next(list, &tuple, &error) == 0)
            continue;
        heddle_list_close(list);
        took = now_us() - start;
        best = took < best ? took : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    struct session s = {.thread.id = text("00000000-0000-0000-0000-000000000007")};
    struct heddle_error error = {0};
    char by_id[40] = "";
    int count;
    double slope, fixed;

    if (argc != 3 || (count = (int)strtol(argv[2], NULL, 10)) < 2) {
        fprintf(stderr, "usage: bench-replay URL MESSAGES\n");
        return 2;
    }
    if (heddle_open(&s.store, argv[1], &error))
        die(&error);
    for (int step = 0; step < count; step++) {
        char number[16];
        size_t len;

        append_message(&s, step);
        put(&s, step);
        if (step == count * 3 / 4)
            memcpy(by_id, s.id, sizeof(by_id));
        char write[LINE + 2] = "[";
        memcpy(write + 1, s.message, s.message_len);
        write[s.message_len + 1] = ']';
        put_write(&s, 2 * step, "messages", write, s.message_len + 2);
        len = (size_t)snprintf(number, sizeof(number), "%d", step);
        put_write(&s, 2 * step + 1, "count", number, len);
    }
    slope =
        (s.line.n * s.line.xy - s.line.x * s.line.y) / (s.line.n * s.line.xx - s.line.x * s.line.x);
    fixed = (s.line.y - slope * s.line.x) / s.line.n;
    printf("{\"messages\": %d, \"steps_per_s\": %.1f, \"get_latest_ms\": %.4f, \"get_by_id_ms\": "
           "%.4f, "
           "\"list_10_ms\": %.4f, \"fixed_us\": %.1f, \"pass_mb_per_s\": %.0f}\n",
           count, count / s.spent * 1e6, best_get_us(&s, "") / 1e3, best_get_us(&s, by_id) / 1e3,
           best_list_us(&s) / 1e3, fixed, slope > 0 ? 1 / slope : -1.0);
    heddle_close(s.store);
    free(s.messages);
    return 0;
}
