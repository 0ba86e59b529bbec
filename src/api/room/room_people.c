#include "api/room/room_people.h"

#include "records/participants.h"
#include "records/principals.h"

/* The one person of a server without authentication. */
static const struct hd_room_person anyone = {
    .kind = HD_ROOM_PERSON, .id = HD_S_INIT("user"), .name = HD_S_INIT("User")};

static struct hd_room_person person_of(struct hd_slice principal, struct hd_slice subject)
{
    return (struct hd_room_person){
        .kind = HD_ROOM_PERSON, .key = principal, .id = subject, .name = subject};
}

/* The name that the project's own authentication gave the user; or unchanged. */
static int read_display_name(struct hd_call *call, struct hd_slice *name)
{
    struct hd_json json = {NULL};
    struct hd_slice given;
    int err;

    if (call->identity->user.len == 0)
        return 0;
    err = hd_json_parse(&json, call->identity->user, &call->fault);
    given = hd_json_string(hd_json_get(hd_json_root(&json), HD_S("display_name")));
    if (!err && given.len > 0 && given.len <= HD_ROOM_MAX_NAME)
        err = hd_arena_copy(call->arena, given, name);
    hd_json_fini(&json);
    return err;
}

int hd_room_people_me(struct hd_call *call, struct hd_room_person *out)
{
    *out = anyone;
    if (!call->identity)
        return 0;
    *out = person_of(call->actor, call->identity->subject);
    return read_display_name(call, &out->name);
}

int hd_room_people_find(struct hd_call *call, struct hd_slice principal, struct hd_room_person *out)
{
    struct hd_principal_rec rec;
    int err;

    *out = anyone;
    if (principal.len == 0)
        return 0;
    if (call->identity && hd_slice_eq(principal, call->actor))
        return hd_room_people_me(call, out);
    err = hd_principal_read(call->app->store, principal, call->arena, &rec, &call->fault);
    *out = person_of(principal, err ? hd_slice(NULL, 0) : rec.subject);
    return err == HD_ENOTFOUND ? 0 : err;
}

/* ---- everybody -------------------------------------------------------- */

struct people_list {
    struct hd_call *call;
    struct hd_room_person *list;
    size_t count;
};

static bool has_person(const struct people_list *people, struct hd_slice key)
{
    for (size_t i = 0; i < people->count; i++) {
        if (hd_slice_eq(people->list[i].key, key))
            return true;
    }
    return false;
}

static int add_participant_person(void *arg, const struct hd_participant_rec *participant)
{
    struct people_list *people = arg;
    struct hd_room_person *person = &people->list[people->count];
    struct hd_arena *arena = people->call->arena;
    int err;

    if (participant->is_organisation || has_person(people, participant->member))
        return 0;
    *person = person_of(participant->member, participant->subject);
    err = hd_arena_copy(arena, person->key, &person->key);
    if (!err)
        err = hd_arena_copy(arena, person->id, &person->id);
    person->name = person->id;
    people->count += !err;
    return err;
}

int hd_room_people_read(struct hd_call *call, const struct hd_thread_rec *thread,
                        struct hd_room_person **out, size_t *count)
{
    struct people_list people = {.call = call};
    int err;

    people.list = hd_arena_calloc(call->arena, HD_MAX_PARTICIPANTS + 2, sizeof(*people.list));
    if (!people.list)
        return HD_ENOMEM;
    err = hd_room_people_find(call, thread->principal, &people.list[0]);
    if (!err && call->identity && !hd_slice_eq(thread->principal, call->actor))
        err = hd_room_people_me(call, &people.list[1]);
    people.count = people.list[1].id.len > 0 ? 2 : 1;
    if (!err && call->identity)
        err = hd_participants_scan(call->app->store, thread->principal, thread->id,
                                   add_participant_person, &people, &call->fault);
    *out = people.list;
    *count = people.count;
    return err;
}
