#include "records/participants.h"

#include <stdlib.h>

#include "records/record_internal.h"

static const char *const roles[] = {[HD_ROLE_NONE] = "none",
                                    [HD_ROLE_VIEWER] = "viewer",
                                    [HD_ROLE_EDITOR] = "editor",
                                    [HD_ROLE_OWNER] = "owner"};

const char *hd_role_name(enum hd_role role)
{
    return roles[role];
}

/* Limits the role of a row to those that can be granted. */
static enum hd_role role_of(const struct hd_cell *cells)
{
    int64_t role = cells[HD_PARTICIPANTS_ROLE].number;

    return role == HD_ROLE_VIEWER || role == HD_ROLE_EDITOR ? (enum hd_role)role : HD_ROLE_NONE;
}

/* ---- owner of a thread ------------------------------------------------ */

struct grant {
    struct grant *next;
    struct hd_slice owner;
    enum hd_role role;
    int64_t created_at;
};

struct grant_finding {
    struct hd_arena *arena;
    struct grant *grants;
};

static int on_grant(void *arg, size_t which, const struct hd_cell *cells)
{
    struct grant_finding *finding = arg;
    enum hd_role role = role_of(cells);
    struct grant *grant;

    (void)which;
    if (role == HD_ROLE_NONE)
        return 0;
    grant = hd_arena_alloc(finding->arena, sizeof(*grant));
    if (!grant)
        return HD_ENOMEM;
    *grant = (struct grant){
        .next = finding->grants, .role = role, .created_at = cells[HD_PARTICIPANTS_CREATED].number};
    finding->grants = grant;
    return hd_arena_copy(finding->arena, cells[HD_PARTICIPANTS_OWNER].bytes, &grant->owner);
}

static bool is_older(const struct grant *a, const struct grant *b)
{
    if (a->created_at != b->created_at)
        return a->created_at < b->created_at;
    return hd_slice_cmp(a->owner, b->owner) < 0;
}

static int choose_grant(const struct grant *grants, struct hd_slice *owner, enum hd_role *role)
{
    const struct grant *oldest = grants;

    if (!oldest)
        return HD_ENOTFOUND;
    for (const struct grant *grant = grants; grant; grant = grant->next) {
        if (is_older(grant, oldest))
            oldest = grant;
    }
    *owner = oldest->owner;
    *role = oldest->role;
    for (const struct grant *grant = grants; grant; grant = grant->next) {
        if (grant->role > *role && hd_slice_eq(grant->owner, oldest->owner))
            *role = grant->role;
    }
    return 0;
}

int hd_participation_find(struct heddle *store, struct hd_slice actor,
                          const struct hd_slice *organisations, size_t count,
                          struct hd_slice thread_id, struct hd_arena *arena, struct hd_slice *owner,
                          enum hd_role *role, struct heddle_error *fault)
{
    struct hd_cell keys[1 + HD_MAX_ORGANISATIONS][2];
    struct hd_query queries[1 + HD_MAX_ORGANISATIONS];
    struct grant_finding finding = {.arena = arena};
    int err;

    if (count > HD_MAX_ORGANISATIONS)
        return hd_error_set(fault, HD_ELIMIT, "more than %d organisations", HD_MAX_ORGANISATIONS);
    for (size_t i = 0; i <= count; i++) {
        keys[i][0] = hd_cell_bytes(i == 0 ? actor : organisations[i - 1]);
        keys[i][1] = hd_cell_bytes(thread_id);
        queries[i] = (struct hd_query){.table = HD_PARTICIPANTS,
                                       .index = HD_PRIMARY,
                                       .prefix = keys[i],
                                       .prefix_count = HD_COUNT(keys[i]),
                                       .columns = 1u << HD_PARTICIPANTS_ROLE |
                                                  1u << HD_PARTICIPANTS_CREATED};
    }
    err = hd_rows_read(store, queries, count + 1, on_grant, &finding, fault);
    return err ? err : choose_grant(finding.grants, owner, role);
}

/* ---- how it is stored ------------------------------------------------- */

#define REC struct hd_participant_rec

static const struct hd_record_field participant_members[] = {
    {HD_RECORD_MEMBER("issuer", TEXT, REC, issuer)},
    {HD_RECORD_MEMBER("subject", TEXT, REC, subject), .flags = HD_RECORD_UNLESS,
     .other = offsetof(REC, is_organisation)},
    {HD_RECORD_MEMBER("organisation", TEXT, REC, subject), .flags = HD_RECORD_IF,
     .other = offsetof(REC, is_organisation)},
};

static int complete_participant(const struct hd_cell *cells, void *record)
{
    struct hd_participant_rec *participant = record;

    participant->role = role_of(cells);
    return 0;
}

static int call_participant_fn(const void *fn, void *arg, const void *record)
{
    return (*(const hd_participant_fn *)fn)(arg, record);
}

static const struct hd_record_type participant_type = {
    .table = HD_PARTICIPANTS,
    .size = sizeof(REC),
    .id = HD_PARTICIPANTS_THREAD,
    .columns =
        {
            [HD_PARTICIPANTS_MEMBER] = {HD_RECORD_COLUMN(TEXT, REC, member)},
            [HD_PARTICIPANTS_THREAD] = {HD_RECORD_COLUMN(TEXT, REC, thread_id)},
            [HD_PARTICIPANTS_OWNER] = {HD_RECORD_COLUMN(TEXT, REC, owner)},
            [HD_PARTICIPANTS_ROLE] = {HD_RECORD_COLUMN(INT, REC, role)},
            [HD_PARTICIPANTS_CREATED] = {HD_RECORD_COLUMN(INT, REC, created_at)},
            [HD_PARTICIPANTS_BODY] = {.kind = HD_RECORD_BODY},
        },
    HD_RECORD_MEMBERS(participant_members),
    .unknown = offsetof(REC, unknown),
    .complete = complete_participant,
    .call = call_participant_fn,
};

/* ---- reading ---------------------------------------------------------- */

int hd_participant_read(struct heddle *store, struct hd_slice member, struct hd_slice owner,
                        struct hd_slice thread_id, struct hd_arena *arena,
                        struct hd_participant_rec *out, struct heddle_error *fault)
{
    const struct hd_cell key[] = {hd_cell_bytes(member), hd_cell_bytes(thread_id),
                                  hd_cell_bytes(owner)};

    return hd_record_read(store, &participant_type, key, HD_COUNT(key), arena, out, fault);
}

int hd_participations_scan(struct heddle *store, struct hd_slice member, hd_participant_fn fn,
                           void *arg, struct heddle_error *fault)
{
    const struct hd_cell prefix = hd_cell_bytes(member);
    const struct hd_query query = {.index = HD_PRIMARY, .prefix = &prefix, .prefix_count = 1};

    return hd_records_scan(store, &participant_type, query, &fn, arg, fault);
}

int hd_participants_scan(struct heddle *store, struct hd_slice owner, struct hd_slice thread_id,
                         hd_participant_fn fn, void *arg, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(owner), hd_cell_bytes(thread_id)};
    const struct hd_query query = {
        .index = HD_PARTICIPANTS_BY_THREAD, .prefix = prefix, .prefix_count = HD_COUNT(prefix)};

    return hd_records_scan(store, &participant_type, query, &fn, arg, fault);
}

static int on_counted(void *arg, size_t which, const struct hd_cell *cells)
{
    size_t *count = arg;

    (void)which;
    (void)cells;
    ++*count;
    return 0;
}

int hd_participants_count(struct heddle *store, struct hd_slice owner, struct hd_slice thread_id,
                          size_t most, size_t *out, struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(owner), hd_cell_bytes(thread_id)};
    const struct hd_query query = {.table = HD_PARTICIPANTS,
                                   .index = HD_PARTICIPANTS_BY_THREAD,
                                   .prefix = prefix,
                                   .prefix_count = HD_COUNT(prefix),
                                   .limit = most,
                                   .columns = 0};

    *out = 0;
    return hd_rows_read(store, &query, 1, on_counted, out, fault);
}

int hd_participants_share(struct heddle *store, struct hd_slice owner, struct hd_slice thread_id,
                          struct hd_slice actor, bool *out, struct heddle_error *fault)
{
    size_t count = 0;
    int err = 0;

    *out = !hd_slice_eq(actor, owner);
    if (!*out)
        err = hd_participants_count(store, owner, thread_id, 1, &count, fault);
    *out |= count > 0;
    return err;
}

struct member_search {
    struct hd_slice principal;
    enum hd_role least;
    bool is_found;
};

static int on_member(void *arg, const struct hd_participant_rec *participant)
{
    struct member_search *search = arg;

    search->is_found =
        participant->role >= search->least &&
        (participant->is_organisation || hd_slice_eq(participant->member, search->principal));
    return search->is_found;
}

int hd_participants_include(struct heddle *store, struct hd_slice owner, struct hd_slice thread_id,
                            struct hd_slice principal, enum hd_role least, bool *out,
                            struct heddle_error *fault)
{
    struct member_search search = {
        .principal = principal, .least = least, .is_found = hd_slice_eq(principal, owner)};
    int err = search.is_found
                  ? 0
                  : hd_participants_scan(store, owner, thread_id, on_member, &search, fault);

    *out = search.is_found;
    return err;
}

/* ---- all that is shared ------------------------------------------------ */

struct shared_list {
    struct hd_arena *arena;
    struct hd_shared *items;
    size_t count, cap;
    struct heddle_error *fault;
};

static int on_shared(void *arg, size_t which, const struct hd_cell *cells)
{
    struct shared_list *list = arg;
    struct hd_shared *item;
    int err;

    (void)which;
    if (role_of(cells) == HD_ROLE_NONE)
        return 0;
    if (list->count == HD_MAX_SHARED)
        return hd_error_set(list->fault, HD_ELIMIT, "more than %d threads are shared",
                            HD_MAX_SHARED);
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 16;
        struct hd_shared *grown = hd_arena_calloc(list->arena, cap, sizeof(*grown));

        if (!grown)
            return HD_ENOMEM;
        if (list->count > 0)
            memcpy(grown, list->items, list->count * sizeof(*grown));
        list->items = grown;
        list->cap = cap;
    }
    item = &list->items[list->count];
    *item =
        (struct hd_shared){.role = role_of(cells), .since = cells[HD_PARTICIPANTS_CREATED].number};
    err = hd_arena_copy(list->arena, cells[HD_PARTICIPANTS_THREAD].bytes, &item->thread_id);
    if (!err)
        err = hd_arena_copy(list->arena, cells[HD_PARTICIPANTS_OWNER].bytes, &item->owner);
    list->count += !err;
    return err;
}

/* By thread, then by age: the oldest first. */
static int compare_shared(const void *a, const void *b)
{
    const struct hd_shared *one = a, *other = b;
    int order = hd_slice_cmp(one->thread_id, other->thread_id);

    if (order == 0 && one->since != other->since)
        order = one->since < other->since ? -1 : 1;
    return order != 0 ? order : hd_slice_cmp(one->owner, other->owner);
}

/* The first of each thread stays, with the greatest role that its owner gave. */
static size_t drop_doubles(struct hd_shared *items, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct hd_shared *last = kept > 0 ? &items[kept - 1] : NULL;

        if (!last || !hd_slice_eq(last->thread_id, items[i].thread_id))
            items[kept++] = items[i];
        else if (hd_slice_eq(last->owner, items[i].owner) && items[i].role > last->role)
            last->role = items[i].role;
    }
    return kept;
}

int hd_participations_list(struct heddle *store, struct hd_slice actor,
                           const struct hd_slice *organisations, size_t count,
                           struct hd_arena *arena, struct hd_shared **out, size_t *out_count,
                           struct heddle_error *fault)
{
    struct shared_list list = {.arena = arena, .fault = fault};
    int err = 0;

    for (size_t i = 0; !err && i <= count; i++) {
        const struct hd_cell prefix = hd_cell_bytes(i == 0 ? actor : organisations[i - 1]);
        struct hd_query query = {.table = HD_PARTICIPANTS,
                                 .index = HD_PRIMARY,
                                 .prefix = &prefix,
                                 .prefix_count = 1,
                                 .columns =
                                     1u << HD_PARTICIPANTS_ROLE | 1u << HD_PARTICIPANTS_CREATED};

        err = hd_rows_scan(store, query, on_shared, &list, fault);
    }
    if (err)
        return err;
    if (list.count > 0)
        qsort(list.items, list.count, sizeof(*list.items), compare_shared);
    *out = list.items;
    *out_count = drop_doubles(list.items, list.count);
    return 0;
}

/* ---- writing ---------------------------------------------------------- */

int hd_participant_add(struct hd_batch_builder *batch, const struct hd_thread_rec *thread,
                       const struct hd_participant_rec *participant)
{
    /* The creation time distinguishes a thread from a later one with the same id. */
    const struct hd_cell key[] = {hd_cell_bytes(thread->principal), hd_cell_bytes(thread->id)};
    struct hd_participant_rec added = *participant;
    int err =
        hd_batch_expect(batch, HD_THREAD_INFO, key, HD_THREAD_INFO_CREATED, thread->created_at);

    added.owner = thread->principal;
    added.thread_id = thread->id;
    return err ? err : hd_record_write(batch, &participant_type, &added, HD_OP_ADD);
}

int hd_participant_set_role(struct hd_batch_builder *batch,
                            const struct hd_participant_rec *participant, enum hd_role role)
{
    struct hd_cell key[HD_MAX_COLUMNS];

    hd_record_key(&participant_type, participant, key);
    return hd_batch_expect_and_set(batch, HD_PARTICIPANTS, key, HD_PARTICIPANTS_ROLE,
                                   participant->role, HD_PARTICIPANTS_ROLE, role);
}

int hd_participant_remove(struct hd_batch_builder *batch,
                          const struct hd_participant_rec *participant)
{
    struct hd_cell key[HD_MAX_COLUMNS];
    int err;

    hd_record_key(&participant_type, participant, key);
    err = hd_batch_expect(batch, HD_PARTICIPANTS, key, HD_PARTICIPANTS_ROLE, participant->role);
    return err ? err : hd_record_delete(batch, &participant_type, participant);
}

/* ---- deleting a thread ------------------------------------------------ */

static int on_doomed(void *arg, size_t which, const struct hd_cell *cells)
{
    struct hd_batch_builder *batch = arg;
    struct hd_cell key[3];
    int err = 0;

    if (which == 1) {
        key[0] = cells[HD_INVITATIONS_ID];
        err = hd_arena_copy(&batch->arena, key[0].bytes, &key[0].bytes);
        return err ? err : hd_batch_delete(batch, HD_INVITATIONS, key, 1);
    }
    key[0] = cells[HD_PARTICIPANTS_MEMBER];
    key[1] = cells[HD_PARTICIPANTS_THREAD];
    key[2] = cells[HD_PARTICIPANTS_OWNER];
    for (size_t i = 0; !err && i < HD_COUNT(key); i++)
        err = hd_arena_copy(&batch->arena, key[i].bytes, &key[i].bytes);
    return err ? err : hd_batch_delete(batch, HD_PARTICIPANTS, key, HD_COUNT(key));
}

int hd_participants_delete(struct heddle *store, struct hd_batch_builder *batch,
                           struct hd_slice owner, struct hd_slice thread_id,
                           struct heddle_error *fault)
{
    const struct hd_cell prefix[] = {hd_cell_bytes(owner), hd_cell_bytes(thread_id)};
    const struct hd_query queries[] = {{.table = HD_PARTICIPANTS,
                                        .index = HD_PARTICIPANTS_BY_THREAD,
                                        .prefix = prefix,
                                        .prefix_count = HD_COUNT(prefix)},
                                       {.table = HD_INVITATIONS,
                                        .index = HD_INVITATIONS_BY_THREAD,
                                        .prefix = prefix,
                                        .prefix_count = HD_COUNT(prefix)}};

    return hd_rows_read(store, queries, HD_COUNT(queries), on_doomed, batch, fault);
}

struct doomed_crons {
    struct heddle *store;
    struct hd_batch_builder *batch;
    struct hd_slice owner;
    struct hd_slice thread_id;
    struct heddle_error *fault;
};

static int on_thread_cron(void *arg, const struct hd_cron_rec *cron)
{
    const struct doomed_crons *doomed = arg;
    struct hd_slice principal, id;
    int err;

    if (!hd_slice_eq(cron->thread_id, doomed->thread_id))
        return 0;
    err = hd_arena_copy(&doomed->batch->arena, cron->principal, &principal);
    if (!err)
        err = hd_arena_copy(&doomed->batch->arena, cron->id, &id);
    return err ? err : hd_cron_delete(doomed->batch, principal, id);
}

/* A participant's crons run on the thread unless it has another one with the same id. */
static int is_meant(const struct doomed_crons *doomed, struct hd_slice member, bool *out)
{
    struct hd_arena *arena = &doomed->batch->arena;
    struct heddle_error ignored = {0};
    struct hd_thread_rec own;
    enum hd_role role;
    struct hd_slice owner = {NULL, 0};
    int err = hd_thread_read(doomed->store, member, doomed->thread_id, arena, &own, &ignored);

    *out = false;
    if (err != HD_ENOTFOUND)
        return err ? hd_error_set(doomed->fault, err, "%s", ignored.text) : 0;
    ignored = (struct heddle_error){0};
    err = hd_participation_find(doomed->store, member, NULL, 0, doomed->thread_id, arena, &owner,
                                &role, &ignored);
    if (err && err != HD_ENOTFOUND)
        return hd_error_set(doomed->fault, err, "%s", ignored.text);
    *out = !err && hd_slice_eq(owner, doomed->owner);
    return 0;
}

static int on_cron_owner(void *arg, const struct hd_participant_rec *participant)
{
    struct doomed_crons *doomed = arg;
    bool is_wanted = false;
    int err = 0;

    if (!participant->is_organisation)
        err = is_meant(doomed, participant->member, &is_wanted);
    if (err || !is_wanted)
        return err;
    return hd_crons_scan(doomed->store, participant->member, on_thread_cron, doomed, doomed->fault);
}

int hd_participants_delete_crons(struct heddle *store, struct hd_batch_builder *batch,
                                 struct hd_slice owner, struct hd_slice thread_id,
                                 struct heddle_error *fault)
{
    struct doomed_crons doomed = {
        .store = store, .batch = batch, .owner = owner, .thread_id = thread_id, .fault = fault};
    int err = hd_crons_scan(store, owner, on_thread_cron, &doomed, fault);

    if (!err && owner.len > 0)
        err = hd_participants_scan(store, owner, thread_id, on_cron_owner, &doomed, fault);
    return err;
}
