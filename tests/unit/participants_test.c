/* Participants of threads and invitations, in memory and on SQLite. */
#include "records/participants.h"

#include <heddle.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "run/run_commit.h"
#include "store/rows.h"
#include "tests/unit/check.h"

#define MAX_ARENA ((size_t)1 << 26)
#define ADA HD_S("ada")
#define BOB HD_S("bob")
#define EVE HD_S("eve")
#define ORG HD_S("org")
#define JOB HD_S("job")

struct world {
    struct heddle *store;
    struct hd_arena arena;
    struct heddle_error fault;
};

static struct world *world_open(const char *url)
{
    struct world *w = calloc(1, sizeof(*w));
    struct heddle_error error = {0};

    assert_non_null(w);
    hd_arena_init(&w->arena, MAX_ARENA);
    if (heddle_open(&w->store, url, &error))
        fail_msg("%s", error.text);
    return w;
}

static int setup_memory(void **state)
{
    *state = world_open("memory:");
    return 0;
}

static int setup_sqlite(void **state)
{
    *state = world_open("sqlite::memory:");
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    heddle_close(w->store);
    hd_arena_fini(&w->arena);
    free(w);
    return 0;
}

/* Applies and ends the batch. */
static int apply(struct world *w, struct hd_batch_builder *builder)
{
    struct hd_batch batch = hd_batch_view(builder);
    int err = hd_rows_apply(w->store, HD_S("ada:job"), &batch, NULL, NULL);

    hd_batch_fini(builder);
    return err;
}

#define ENDS(w, call, code)                     \
    do {                                        \
        struct hd_batch_builder batch;          \
        hd_batch_init(&batch);                  \
        assert_err((call), 0);                  \
        assert_err(apply((w), &batch), (code)); \
    } while (0)
#define APPLY(w, call) ENDS(w, call, 0)
#define REFUSED(w, call) ENDS(w, call, HD_ECONFLICT)

static struct hd_thread_rec make_thread(struct world *w, struct hd_slice owner, int64_t created_at)
{
    struct hd_thread_rec thread;

    hd_thread_init(&thread, owner, JOB);
    thread.created_at = thread.updated_at = created_at;
    APPLY(w, hd_thread_add(&batch, &thread));
    return thread;
}

static void share(struct world *w, const struct hd_thread_rec *thread, struct hd_slice member,
                  enum hd_role role, int64_t at)
{
    const struct hd_participant_rec participant = {.member = member,
                                                   .role = role,
                                                   .created_at = at,
                                                   .is_organisation = hd_slice_eq(member, ORG),
                                                   .issuer = HD_S("main"),
                                                   .subject = member};

    APPLY(w, hd_participant_add(&batch, thread, &participant));
}

static int find(struct world *w, struct hd_slice actor, bool in_org, struct hd_slice *owner,
                enum hd_role *role)
{
    const struct hd_slice orgs[] = {HD_S("other"), ORG};

    *owner = hd_slice(NULL, 0);
    *role = HD_ROLE_NONE;
    return hd_participation_find(w->store, actor, orgs, in_org ? 2 : 0, JOB, &w->arena, owner, role,
                                 &w->fault);
}

/* ---- participants ----------------------------------------------------- */

static void a_participant_comes_back_as_it_was(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread = make_thread(w, ADA, 5);
    struct hd_participant_rec back;

    assert_err(hd_participant_read(w->store, BOB, ADA, JOB, &w->arena, &back, &w->fault),
               HD_ENOTFOUND);
    share(w, &thread, BOB, HD_ROLE_EDITOR, 7);
    share(w, &thread, ORG, HD_ROLE_VIEWER, 8);
    assert_err(hd_participant_read(w->store, BOB, ADA, JOB, &w->arena, &back, &w->fault), 0);
    assert_slice(back.member, BOB);
    assert_slice(back.owner, ADA);
    assert_slice(back.thread_id, JOB);
    assert_slice(back.issuer, HD_S("main"));
    assert_slice(back.subject, BOB);
    assert_int_equal(back.role, HD_ROLE_EDITOR);
    assert_int_equal(back.created_at, 7);
    assert_false(back.is_organisation);
    assert_err(hd_participant_read(w->store, ORG, ADA, JOB, &w->arena, &back, &w->fault), 0);
    assert_true(back.is_organisation);
    assert_slice(back.subject, ORG);
    assert_err(hd_participant_read(w->store, BOB, BOB, JOB, &w->arena, &back, &w->fault),
               HD_ENOTFOUND);
}

static void a_second_addition_and_a_deleted_thread_conflict(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread = make_thread(w, ADA, 5);
    struct hd_participant_rec bob = {.member = BOB, .role = HD_ROLE_VIEWER, .created_at = 7};

    APPLY(w, hd_participant_add(&batch, &thread, &bob));
    REFUSED(w, hd_participant_add(&batch, &thread, &bob));
    bob.member = EVE;
    thread.created_at = 4; /* an earlier thread with the same id */
    REFUSED(w, hd_participant_add(&batch, &thread, &bob));
    thread.id = HD_S("none");
    REFUSED(w, hd_participant_add(&batch, &thread, &bob));
}

static void a_role_is_changed_and_taken_away(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread = make_thread(w, ADA, 5);
    struct hd_participant_rec bob, old;
    struct hd_slice owner;
    enum hd_role role;

    share(w, &thread, BOB, HD_ROLE_VIEWER, 7);
    assert_err(hd_participant_read(w->store, BOB, ADA, JOB, &w->arena, &old, &w->fault), 0);
    APPLY(w, hd_participant_set_role(&batch, &old, HD_ROLE_EDITOR));
    assert_err(find(w, BOB, false, &owner, &role), 0);
    assert_int_equal(role, HD_ROLE_EDITOR);
    /* A change based on the old role is a conflict. */
    REFUSED(w, hd_participant_set_role(&batch, &old, HD_ROLE_EDITOR));
    REFUSED(w, hd_participant_remove(&batch, &old));
    assert_err(hd_participant_read(w->store, BOB, ADA, JOB, &w->arena, &bob, &w->fault), 0);
    assert_slice(bob.subject, BOB);
    APPLY(w, hd_participant_remove(&batch, &bob));
    assert_err(find(w, BOB, false, &owner, &role), HD_ENOTFOUND);
    REFUSED(w, hd_participant_remove(&batch, &bob));
}

static bool includes(struct world *w, struct hd_slice principal, enum hd_role least)
{
    bool is_so = false;

    assert_err(hd_participants_include(w->store, ADA, JOB, principal, least, &is_so, &w->fault), 0);
    return is_so;
}

static void a_thread_includes_its_owner_and_who_takes_part(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread = make_thread(w, ADA, 5);

    share(w, &thread, BOB, HD_ROLE_VIEWER, 6);
    assert_true(includes(w, ADA, HD_ROLE_EDITOR));
    assert_true(includes(w, BOB, HD_ROLE_VIEWER));
    assert_false(includes(w, BOB, HD_ROLE_EDITOR));
    assert_false(includes(w, EVE, HD_ROLE_VIEWER));
    share(w, &thread, ORG, HD_ROLE_VIEWER, 7);
    assert_true(includes(w, EVE, HD_ROLE_VIEWER));
    assert_false(includes(w, EVE, HD_ROLE_EDITOR));
}

static void the_first_owner_counts_with_its_greatest_role(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec adas = make_thread(w, ADA, 5), eves = make_thread(w, EVE, 1);
    struct hd_slice owner;
    enum hd_role role;

    assert_err(find(w, BOB, true, &owner, &role), HD_ENOTFOUND);
    assert_int_equal(w->fault.code, 0);
    share(w, &adas, ORG, HD_ROLE_VIEWER, 10);
    assert_err(find(w, BOB, false, &owner, &role), HD_ENOTFOUND);
    assert_err(find(w, BOB, true, &owner, &role), 0);
    assert_slice(owner, ADA);
    assert_int_equal(role, HD_ROLE_VIEWER);

    share(w, &eves, BOB, HD_ROLE_EDITOR, 20);
    assert_err(find(w, BOB, true, &owner, &role), 0);
    assert_slice(owner, ADA);
    assert_int_equal(role, HD_ROLE_VIEWER);
    assert_err(find(w, BOB, false, &owner, &role), 0);
    assert_slice(owner, EVE);

    share(w, &adas, BOB, HD_ROLE_EDITOR, 30);
    assert_err(find(w, BOB, true, &owner, &role), 0);
    assert_slice(owner, ADA);
    assert_int_equal(role, HD_ROLE_EDITOR);
    assert_err(find(w, EVE, false, &owner, &role), HD_ENOTFOUND);
}

/* A row cannot grant the role of the owner. */
static void a_row_grants_no_more_than_can_be_granted(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread = make_thread(w, ADA, 5);
    struct hd_slice owner;
    enum hd_role role;

    share(w, &thread, BOB, HD_ROLE_OWNER, 7);
    share(w, &thread, EVE, (enum hd_role)77, 7);
    assert_err(find(w, BOB, false, &owner, &role), HD_ENOTFOUND);
    assert_err(find(w, EVE, false, &owner, &role), HD_ENOTFOUND);
}

static void too_many_organisations_are_refused(void **state)
{
    struct world *w = *state;
    struct hd_slice orgs[HD_MAX_ORGANISATIONS + 1];
    struct hd_slice owner;
    enum hd_role role;

    for (size_t i = 0; i < HD_COUNT(orgs); i++)
        orgs[i] = ORG;
    assert_err(hd_participation_find(w->store, BOB, orgs, HD_COUNT(orgs), JOB, &w->arena, &owner,
                                     &role, &w->fault),
               HD_ELIMIT);
    w->fault.code = 0;
    assert_err(hd_participation_find(w->store, BOB, orgs, HD_COUNT(orgs) - 1, JOB, &w->arena,
                                     &owner, &role, &w->fault),
               HD_ENOTFOUND);
}

struct seen {
    char text[256];
    size_t count;
    size_t most; /* 0: all */
};

static int see(void *arg, const struct hd_participant_rec *participant)
{
    struct seen *seen = arg;
    size_t len = strlen(seen->text);

    snprintf(seen->text + len, sizeof(seen->text) - len, "%.*s>%.*s=%s ",
             (int)participant->member.len, participant->member.ptr, (int)participant->owner.len,
             participant->owner.ptr, hd_role_name(participant->role));
    seen->count++;
    return seen->most && seen->count == seen->most;
}

static void participants_are_listed_by_thread_and_by_member(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec adas = make_thread(w, ADA, 5), eves = make_thread(w, EVE, 6);
    struct seen seen = {.count = 0};
    size_t count;

    share(w, &adas, ORG, HD_ROLE_VIEWER, 1);
    share(w, &adas, BOB, HD_ROLE_EDITOR, 2);
    share(w, &eves, BOB, HD_ROLE_VIEWER, 3);
    assert_err(hd_participants_scan(w->store, ADA, JOB, see, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "bob>ada=editor org>ada=viewer ");
    seen = (struct seen){.count = 0};
    assert_err(hd_participations_scan(w->store, BOB, see, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "bob>ada=editor bob>eve=viewer ");
    seen = (struct seen){.most = 1};
    assert_err(hd_participations_scan(w->store, BOB, see, &seen, &w->fault), 0);
    assert_int_equal(seen.count, 1);
    assert_err(hd_participants_count(w->store, ADA, JOB, 100, &count, &w->fault), 0);
    assert_int_equal(count, 2);
    assert_err(hd_participants_count(w->store, ADA, JOB, 1, &count, &w->fault), 0);
    assert_int_equal(count, 1);
    assert_err(hd_participants_count(w->store, BOB, JOB, 100, &count, &w->fault), 0);
    assert_int_equal(count, 0);
}

/* Listing and lookup give the same result. */
static void all_that_is_shared_is_listed_once(void **state)
{
    struct world *w = *state;
    const struct hd_slice orgs[] = {HD_S("other"), ORG};
    struct hd_thread_rec adas = make_thread(w, ADA, 5), eves = make_thread(w, EVE, 6);
    struct hd_thread_rec second = {.principal = ADA, .id = HD_S("second"), .created_at = 7};
    struct hd_shared *list;
    struct hd_slice owner;
    enum hd_role role;
    size_t count;

    assert_err(hd_participations_list(w->store, BOB, orgs, 2, &w->arena, &list, &count, &w->fault),
               0);
    assert_int_equal(count, 0);
    APPLY(w, hd_thread_add(&batch, &second));
    share(w, &second, BOB, HD_ROLE_VIEWER, 1);
    share(w, &eves, BOB, HD_ROLE_EDITOR, 20);
    share(w, &adas, BOB, HD_ROLE_EDITOR, 30);
    share(w, &adas, ORG, HD_ROLE_VIEWER, 10);
    assert_err(hd_participations_list(w->store, BOB, orgs, 2, &w->arena, &list, &count, &w->fault),
               0);
    assert_int_equal(count, 2);
    assert_err(find(w, BOB, true, &owner, &role), 0);
    assert_slice(list[0].thread_id, JOB);
    assert_slice(list[0].owner, owner);
    assert_int_equal(list[0].role, role);
    assert_int_equal(role, HD_ROLE_EDITOR);
    assert_int_equal(list[0].since, 10);
    assert_slice(list[1].thread_id, HD_S("second"));
    assert_int_equal(list[1].role, HD_ROLE_VIEWER);
    assert_err(hd_participations_list(w->store, BOB, NULL, 0, &w->arena, &list, &count, &w->fault),
               0);
    assert_int_equal(count, 2);
    assert_slice(list[0].owner, EVE);
}

/* ---- invitations ------------------------------------------------------ */

static void tokens_are_new_each_time(void **state)
{
    char one[HD_INVITATION_TOKEN_SIZE], other[HD_INVITATION_TOKEN_SIZE];
    char id[HD_INVITATION_ID_SIZE];

    (void)state;
    assert_err(hd_invitation_token(one), 0);
    assert_err(hd_invitation_token(other), 0);
    assert_int_equal(strlen(one), HD_INVITATION_TOKEN_LEN);
    assert_string_not_equal(one, other);
    assert_int_equal(strspn(one, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789-_"),
                     HD_INVITATION_TOKEN_LEN);
    assert_err(hd_invitation_id(HD_S("abc"), id), 0);
    assert_string_equal(id, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_err(hd_invitation_id(hd_slice(NULL, 0), id), 0);
    assert_string_equal(id, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void invite(struct world *w, const struct hd_thread_rec *thread, struct hd_slice id,
                   int64_t uses, int64_t expires_at)
{
    struct hd_invitation_rec invitation = {.id = id,
                                           .role = HD_ROLE_EDITOR,
                                           .left = uses,
                                           .uses = uses,
                                           .created_at = 9,
                                           .expires_at = expires_at};

    APPLY(w, hd_invitation_add(&batch, thread, &invitation));
}

static void an_invitation_is_used_up(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread = make_thread(w, ADA, 5);
    struct hd_invitation_rec one, other;

    invite(w, &thread, HD_S("x"), 2, 100);
    assert_err(hd_invitation_read(w->store, HD_S("x"), 50, &w->arena, &one, &w->fault), 0);
    assert_slice(one.id, HD_S("x"));
    assert_int_equal(one.rev, 1);
    assert_slice(one.owner, ADA);
    assert_slice(one.thread_id, JOB);
    assert_int_equal(one.role, HD_ROLE_EDITOR);
    assert_int_equal(one.left, 2);
    assert_int_equal(one.uses, 2);
    assert_int_equal(one.created_at, 9);
    assert_int_equal(one.expires_at, 100);
    other = one;
    APPLY(w, hd_invitation_use(&batch, &one));
    REFUSED(w, hd_invitation_use(&batch, &other));
    assert_err(hd_invitation_read(w->store, HD_S("x"), 50, &w->arena, &one, &w->fault), 0);
    assert_int_equal(one.left, 1);
    assert_int_equal(one.uses, 2);
    other = one;
    APPLY(w, hd_invitation_use(&batch, &one));
    REFUSED(w, hd_invitation_use(&batch, &other));
    assert_err(hd_invitation_read(w->store, HD_S("x"), 50, &w->arena, &one, &w->fault),
               HD_ENOTFOUND);
}

static void an_invitation_grants_no_ownership(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread = make_thread(w, ADA, 5);
    struct hd_invitation_rec invitation = {.id = HD_S("x"), .role = HD_ROLE_OWNER, .left = 1};

    APPLY(w, hd_invitation_add(&batch, &thread, &invitation));
    assert_err(hd_invitation_read(w->store, HD_S("x"), 50, &w->arena, &invitation, &w->fault),
               HD_ECORRUPT);
}

static int count_invitation(void *arg, const struct hd_invitation_rec *invitation)
{
    size_t *count = arg;

    assert_slice(invitation->owner, ADA);
    ++*count;
    return 0;
}

static void invitations_expire(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread = make_thread(w, ADA, 5);
    struct hd_invitation_rec invitation;
    size_t count = 0;

    invite(w, &thread, HD_S("x"), 1, 100);
    invite(w, &thread, HD_S("y"), 1, 200);
    invite(w, &thread, HD_S("z"), 1, 0);
    assert_err(hd_invitation_read(w->store, HD_S("x"), 99, &w->arena, &invitation, &w->fault), 0);
    assert_err(hd_invitation_read(w->store, HD_S("x"), 100, &w->arena, &invitation, &w->fault),
               HD_ENOTFOUND);
    assert_err(hd_invitation_read(w->store, HD_S("z"), 1000, &w->arena, &invitation, &w->fault), 0);
    assert_err(hd_invitations_expire(w->store, 99, 10, &count, &w->fault), 0);
    assert_int_equal(count, 0);
    assert_err(hd_invitations_expire(w->store, 100, 10, &count, &w->fault), 0);
    assert_int_equal(count, 1);
    count = 0;
    assert_err(hd_invitations_scan(w->store, ADA, JOB, count_invitation, &count, &w->fault), 0);
    assert_int_equal(count, 2);
    APPLY(w, hd_invitation_delete(&batch, HD_S("z")));
    assert_err(hd_invitations_expire(w->store, 1000, 10, &count, &w->fault), 0);
    assert_int_equal(count, 1);
    count = 0;
    assert_err(hd_invitations_scan(w->store, ADA, JOB, count_invitation, &count, &w->fault), 0);
    assert_int_equal(count, 0);
}

static void an_invitation_to_a_deleted_thread_conflicts(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec thread;
    struct hd_invitation_rec invitation = {.id = HD_S("x"), .role = HD_ROLE_VIEWER, .left = 1};

    hd_thread_init(&thread, ADA, JOB);
    REFUSED(w, hd_invitation_add(&batch, &thread, &invitation));
}

/* ---- deletion of the thread ------------------------------------------- */

static void deleting_a_thread_deletes_them(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec adas = make_thread(w, ADA, 5), eves = make_thread(w, EVE, 6);
    struct seen seen = {.count = 0};
    size_t count = 0;

    share(w, &adas, BOB, HD_ROLE_EDITOR, 1);
    share(w, &adas, ORG, HD_ROLE_VIEWER, 2);
    share(w, &eves, BOB, HD_ROLE_VIEWER, 3);
    invite(w, &adas, HD_S("x"), 1, 100);
    invite(w, &adas, HD_S("y"), 1, 0);
    invite(w, &eves, HD_S("z"), 1, 0);
    assert_err(hd_run_commit_delete_thread(w->store, ADA, JOB, &w->fault), 0);
    assert_err(hd_participants_scan(w->store, ADA, JOB, see, &seen, &w->fault), 0);
    assert_int_equal(seen.count, 0);
    assert_err(hd_invitations_scan(w->store, ADA, JOB, count_invitation, &count, &w->fault), 0);
    assert_int_equal(count, 0);
    assert_err(hd_participations_scan(w->store, BOB, see, &seen, &w->fault), 0);
    assert_string_equal(seen.text, "bob>eve=viewer ");
    assert_err(hd_run_commit_expire_thread(w->store, &eves, &w->fault), 0);
    assert_err(hd_participations_scan(w->store, BOB, see, &seen, &w->fault), 0);
    assert_int_equal(seen.count, 1);
}

static void add_cron(struct world *w, struct hd_slice principal, const char *id,
                     struct hd_slice thread_id)
{
    struct hd_cron_rec cron = {
        .principal = principal, .id = hd_slice_cstr(id), .thread_id = thread_id, .next_at = 1};

    APPLY(w, hd_cron_add(&batch, &cron));
}

static int see_cron(void *arg, const struct hd_cron_rec *cron)
{
    char *text = arg;
    size_t len = strlen(text);

    memcpy(text + len, cron->id.ptr, cron->id.len);
    text[len + cron->id.len] = '\0';
    return 0;
}

static void deleting_a_thread_deletes_its_crons(void **state)
{
    struct world *w = *state;
    struct hd_thread_rec adas = make_thread(w, ADA, 5);
    char left[64] = "";

    make_thread(w, EVE, 6);
    share(w, &adas, BOB, HD_ROLE_EDITOR, 1);
    share(w, &adas, EVE, HD_ROLE_EDITOR, 2);
    share(w, &adas, ORG, HD_ROLE_EDITOR, 3);
    add_cron(w, ADA, "a", JOB);
    add_cron(w, ADA, "b", HD_S("other"));
    add_cron(w, BOB, "c", JOB);
    add_cron(w, BOB, "d", HD_S(""));
    add_cron(w, EVE, "e", JOB); /* of Eve's own thread with that id */
    assert_err(hd_run_commit_delete_thread(w->store, ADA, JOB, &w->fault), 0);
    assert_err(hd_crons_scan_all(w->store, see_cron, left, &w->fault), 0);
    assert_string_equal(left, "bde");
}

/* ---- memory ----------------------------------------------------------- */

static int write_and_find(struct world *w)
{
    struct hd_thread_rec thread = {.principal = ADA, .id = JOB, .created_at = 5};
    struct hd_participant_rec bob = {
        .member = BOB, .role = HD_ROLE_VIEWER, .created_at = 7, .subject = BOB};
    struct hd_batch_builder builder;
    struct hd_arena arena;
    struct hd_slice owner;
    enum hd_role role;
    int err;

    hd_batch_init(&builder);
    hd_arena_init(&arena, MAX_ARENA);
    err = hd_participants_delete(w->store, &builder, ADA, JOB, NULL);
    if (!err)
        err = hd_participant_add(&builder, &thread, &bob);
    if (!err) {
        struct hd_batch batch = hd_batch_view(&builder);

        err = hd_rows_apply(w->store, HD_S("ada:job"), &batch, NULL, NULL);
    }
    hd_batch_fini(&builder);
    if (!err)
        err = hd_participation_find(w->store, BOB, NULL, 0, JOB, &arena, &owner, &role, NULL);
    if (!err)
        err = hd_participant_read(w->store, BOB, ADA, JOB, &arena, &bob, NULL);
    hd_arena_fini(&arena);
    return err;
}

static void a_failed_allocation_is_an_error_at_most(void **state)
{
    long asked = 1;

    make_thread(*state, ADA, 5);
    for (long n = 1; asked >= n; n++) {
        int err;

        (void)hd_alloc_fail_at(n, n & 1);
        err = write_and_find(*state);
        asked = hd_alloc_fail_at(0, 0);
        assert_true(err == HD_ENOMEM || err == 0);
    }
    assert_err(write_and_find(*state), 0);
}

int main(void)
{
#define BOTH(function)                                                 \
    cmocka_unit_test_setup_teardown(function, setup_memory, teardown), \
    {                                                                  \
        "sqlite " #function, function, setup_sqlite, teardown, NULL    \
    }
    const struct CMUnitTest tests[] = {
        BOTH(a_participant_comes_back_as_it_was),
        BOTH(a_second_addition_and_a_deleted_thread_conflict),
        BOTH(a_role_is_changed_and_taken_away),
        BOTH(a_thread_includes_its_owner_and_who_takes_part),
        BOTH(the_first_owner_counts_with_its_greatest_role),
        BOTH(a_row_grants_no_more_than_can_be_granted),
        BOTH(too_many_organisations_are_refused),
        BOTH(participants_are_listed_by_thread_and_by_member),
        BOTH(all_that_is_shared_is_listed_once),
        cmocka_unit_test(tokens_are_new_each_time),
        BOTH(an_invitation_is_used_up),
        BOTH(an_invitation_grants_no_ownership),
        BOTH(invitations_expire),
        BOTH(an_invitation_to_a_deleted_thread_conflicts),
        BOTH(deleting_a_thread_deletes_them),
        BOTH(deleting_a_thread_deletes_its_crons),
        cmocka_unit_test_setup_teardown(a_failed_allocation_is_an_error_at_most, setup_memory,
                                        teardown),
    };
#undef BOTH

    return cmocka_run_group_tests(tests, NULL, NULL);
}
