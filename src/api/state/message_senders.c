#include "api/state/message_senders.h"

#include "api/room/room_people.h"
#include "base/map.h"
#include "run/assistant_lookup.h"

#define MAX_RUNS ((size_t)1 << 24)
#define MAX_SENDER 4096 /* bytes of a sender's JSON */
#define READ_AT_ONCE ((size_t)200)

/* A run that has brought messages. */
struct sender_run {
    struct hd_slice run_id;
    struct hd_run_author author;
    bool is_checked; /* is_asked is set */
    bool is_asked;   /* a chat message made it: the server made its input */
};

struct sender_search {
    struct hd_call *call;
    const struct hd_thread_rec *thread;
    struct hd_arena *arena;
    struct sender_run *runs;
    size_t run_count;
    struct hd_map by_id;  /* run ids to runs */
    struct hd_map people; /* principals to persons */
    struct hd_map agents; /* assistant ids to persons */
};

/* ---- runs ------------------------------------------------------------- */

static int collect_runs(struct sender_search *search, const struct hd_message_path_entry *entries,
                        size_t count)
{
    int err = 0;

    search->runs = hd_arena_calloc(search->arena, count + 1, sizeof(*search->runs));
    if (!search->runs)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < count; i++) {
        struct hd_slice run_id = entries[i].point ? entries[i].point->run_id : hd_slice(NULL, 0);

        if (run_id.len == 0 || hd_map_get(&search->by_id, run_id))
            continue;
        search->runs[search->run_count].run_id = run_id;
        err = hd_map_put(&search->by_id, run_id, &search->runs[search->run_count++]);
    }
    return err;
}

static int read_authors(struct sender_search *search, size_t from, size_t count)
{
    struct hd_run_key keys[READ_AT_ONCE];
    struct hd_run_author authors[READ_AT_ONCE];
    int err;

    for (size_t i = 0; i < count; i++)
        keys[i] = (struct hd_run_key){search->thread->principal, search->thread->id,
                                      search->runs[from + i].run_id};
    err = hd_run_authors_read(search->call->app->store, keys, count, search->arena, authors,
                              &search->call->fault);
    for (size_t i = 0; !err && i < count; i++)
        search->runs[from + i].author = authors[i];
    return err;
}

static int read_runs(struct sender_search *search)
{
    int err = 0;

    for (size_t i = 0; !err && i < search->run_count; i += READ_AT_ONCE) {
        size_t left = search->run_count - i;

        err = read_authors(search, i, left < READ_AT_ONCE ? left : READ_AT_ONCE);
    }
    return err;
}

static int check_asked(struct sender_search *search, struct sender_run *run)
{
    struct hd_room_run_rec rec;
    int err;

    if (run->is_checked)
        return 0;
    run->is_checked = true;
    err = hd_room_run_read(search->call->app->store, search->thread->principal, search->thread->id,
                           run->run_id, search->arena, &rec, &search->call->fault);
    run->is_asked = !err && rec.trigger.len > 0;
    if (err != HD_ENOTFOUND)
        return err;
    search->call->fault = (struct heddle_error){0};
    return 0;
}

/* ---- people and agents ------------------------------------------------ */

static int set_person(struct sender_search *search, struct hd_slice principal,
                      struct hd_message_sender *out)
{
    struct hd_room_person *person = hd_map_get(&search->people, principal);
    int err = 0;

    if (!person) {
        person = hd_arena_calloc(search->arena, 1, sizeof(*person));
        err = person ? hd_room_people_find(search->call, principal, person) : HD_ENOMEM;
        if (!err)
            err = hd_map_put(&search->people, principal, person);
    }
    if (err)
        return err;
    out->person = *person;
    out->is_known = person->id.len > 0;
    return 0;
}

/* Without a name: the caller does not see the assistant. */
static int read_agent(struct sender_search *search, struct hd_slice id,
                      struct hd_room_person *person)
{
    struct hd_call *call = search->call;
    struct hd_assistant_rec assistant;
    int err =
        hd_assistant_lookup(call->app, call->actor, id, search->arena, &assistant, &call->fault);

    if (err == HD_ENOTFOUND && !hd_slice_eq(call->actor, search->thread->principal))
        err = hd_assistant_lookup(call->app, search->thread->principal, id, search->arena,
                                  &assistant, &call->fault);
    *person = (struct hd_room_person){.kind = HD_ROOM_AGENT, .key = id, .id = id};
    if (!err)
        person->name = assistant.name.len > 0 ? assistant.name : assistant.graph_id;
    if (err != HD_ENOTFOUND)
        return err;
    call->fault = (struct heddle_error){0};
    return 0;
}

static int set_agent(struct sender_search *search, struct hd_slice id,
                     struct hd_message_sender *out)
{
    struct hd_room_person *person = hd_map_get(&search->agents, id);
    int err = 0;

    if (id.len == 0)
        return 0;
    if (!person) {
        person = hd_arena_calloc(search->arena, 1, sizeof(*person));
        err = person ? read_agent(search, id, person) : HD_ENOMEM;
        if (!err)
            err = hd_map_put(&search->agents, id, person);
    }
    if (err)
        return err;
    out->person = *person;
    out->is_known = true;
    return 0;
}

/* ---- one message ------------------------------------------------------ */

hd_json_val hd_message_senders_mark(hd_json_val message)
{
    hd_json_val mark = hd_json_get(hd_json_get(message, HD_S("additional_kwargs")), HD_S("heddle"));

    return hd_json_is_object(hd_json_get(mark, HD_S("sender"))) ? mark : NULL;
}

static int copy_mark(struct sender_search *search, hd_json_val message,
                     struct hd_message_sender *out)
{
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, MAX_SENDER);
    hd_jw_init(&jw, &buf);
    hd_jw_val(&jw, hd_json_get(hd_message_senders_mark(message), HD_S("sender")));
    out->is_known = true;
    return hd_jw_finish_in(&jw, search->arena, &out->shown);
}

/* The one whose run brought the message. */
static int find_bringer(struct sender_search *search, const struct hd_message_path_entry *entry,
                        struct hd_message_sender *out)
{
    struct sender_run *run = hd_map_get(&search->by_id, entry->point->run_id);
    int err = 0;

    if (run && search->thread->is_room && hd_message_senders_mark(entry->message))
        err = check_asked(search, run);
    if (err)
        return err;
    if (run && run->is_asked)
        return copy_mark(search, entry->message, out);
    if (run && run->author.cron_id.len > 0) {
        out->is_known = true;
        out->person = (struct hd_room_person){
            .kind = HD_ROOM_SERVICE, .id = run->author.cron_id, .name = HD_S("cron")};
        return 0;
    }
    if (!search->call->identity)
        return set_person(search, hd_slice("", 0), out);
    return run && run->author.is_known ? set_person(search, run->author.actor, out) : 0;
}

static bool is_from(const struct hd_checkpoint_node *point, struct hd_slice source)
{
    return point && hd_slice_eq(point->source, source);
}

/* The checkpoint behind an input is the first that has its messages. */
static bool is_brought(const struct hd_checkpoint_node *point)
{
    return is_from(point, HD_S("input")) || is_from(point->parent, HD_S("input"));
}

static struct hd_slice agent_of(const struct hd_message_path_entry *entry)
{
    const struct hd_checkpoint_target *target = &entry->path->target;

    return target->assistant_id.len > 0 ? target->assistant_id : entry->point->assistant_id;
}

static int find_sender(struct sender_search *search, const struct hd_message_path_entry *entry,
                       struct hd_message_sender *out)
{
    const struct hd_checkpoint_node *point = entry->point;
    const struct sender_run *run;
    bool is_ai = hd_slice_eq(hd_json_string(hd_json_get(entry->message, HD_S("type"))), HD_S("ai"));

    *out = (struct hd_message_sender){.is_known = false};
    if (!point)
        return 0;
    out->is_delegated = point->task_id.len > 0;
    if (is_from(point, HD_S("update")))
        return 0;
    if (is_ai && (out->is_delegated || !is_brought(point)))
        return set_agent(search, agent_of(entry), out);
    if (!out->is_delegated)
        return find_bringer(search, entry, out);
    run = hd_map_get(&search->by_id, point->run_id);
    return run ? set_agent(search, run->author.assistant_id, out) : 0;
}

/* ---- all -------------------------------------------------------------- */

int hd_message_senders_find(struct hd_call *call, const struct hd_thread_rec *thread,
                            const struct hd_message_path_entry *entries, size_t count,
                            struct hd_arena *arena, struct hd_message_sender *out)
{
    struct sender_search search = {.call = call, .thread = thread, .arena = arena};
    int err;

    hd_map_init(&search.by_id, MAX_RUNS);
    hd_map_init(&search.people, MAX_RUNS);
    hd_map_init(&search.agents, MAX_RUNS);
    err = collect_runs(&search, entries, count);
    if (!err)
        err = read_runs(&search);
    for (size_t i = 0; !err && i < count; i++)
        err = find_sender(&search, &entries[i], &out[i]);
    hd_map_fini(&search.agents);
    hd_map_fini(&search.people);
    hd_map_fini(&search.by_id);
    return err;
}

void hd_message_senders_put(struct hd_jw *jw, const struct hd_message_sender *sender)
{
    hd_jw_key(jw, HD_S("sender"));
    if (!sender->is_known)
        hd_jw_null(jw);
    else if (sender->shown.len > 0)
        hd_jw_raw(jw, sender->shown);
    else
        hd_room_view_person(jw, &sender->person);
}
