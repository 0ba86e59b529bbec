/* The plan of a cascade, as a table of rooms, edits and the runs that follow. */
#include "room/cascade_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/check.h"

#define MOST 8

/*
 * A run in short: "R1 A M1 M2 M1" is run R1 on line A, made by M1, with the answer M2, given M1.
 * `-` is an empty word; `M1/2` is version 2; `+B` a line of its delegates; and of flags, `!`: tools
 * with effects, `?`: no fork point, `x`: no agent, `=`: its repeated answer was equal.
 */
struct plan_case {
    const char *name;
    const char *runs[MOST];
    const char *edited; /* "M1/2"; or NULL */
    const char *retried;
    size_t limit;
    const char *expected[MOST]; /* "R1 trigger M1", then "direct", "after R1", … */
    size_t free;
};

static const struct plan_case cases[] = {
    {"the first message of the seed's chat",
     {"R1 A M1 M2 M1", "R2 B M3 M4 M1 M2 M3", "R3 A M5 M6 M3 M4 M5"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R2 given M1 after R1", "R3 given M4 after R2 after R1"},
     3},
    {"the same with a limit of 1",
     {"R1 A M1 M2 M1", "R2 B M3 M4 M1 M2 M3", "R3 A M5 M6 M3 M4 M5"},
     "M1/2",
     NULL,
     1,
     {"R1 trigger M1 direct", "R2 given M1 after R1", "R3 given M4 limit after R2 after R1"},
     2},
    {"the same with a limit of 0",
     {"R1 A M1 M2 M1", "R2 B M3 M4 M1 M2 M3"},
     "M1/2",
     NULL,
     0,
     {"R1 trigger M1 direct", "R2 given M1 limit after R1"},
     1},
    {"an agent that was given neither the message nor its answer",
     {"R1 A M1 M2 M1", "R2 B M3 M4 M3", "R3 A M5 M6 M5"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R3 line R1 after R1"},
     2},
    {"a message that no agent was given", {"R1 A M1 M2 M1"}, "M7/2", NULL, 5, {NULL}, 0},
    {"a message that is only context",
     {"R1 A M2 M3 M1 M2", "R2 B M4 M5 M4"},
     "M1/2",
     NULL,
     5,
     {"R1 given M1"},
     1},
    {"a message with two agents",
     {"R1 A M1 M2 M1", "R2 B M1 M3 M1", "R3 C M4 M5 M2 M3 M4"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R2 trigger M1 direct", "R3 given M2 after R1 after R2"},
     3},
    {"runs that were given the new version",
     {"R1 A M1 M2 M1", "R2 B M3 M4 M1/2 M3"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct"},
     1},
    {"a delegate of an affected run",
     {"R1 A M1 M2 M1 +B", "R2 B M3 M4 M3", "R3 C M5 M6 M5"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R2 line R1 after R1"},
     2},
    {"a run whose delegate uses an affected line",
     {"R1 B M1 M2 M1", "R2 A M3 M4 M3 +B", "R3 A M5 M6 M5"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R2 line R1 after R1", "R3 line R2 after R2"},
     3},
    {"an equal answer leaves the set",
     {"R1 A M1 M2 M1 =", "R2 B M3 M4 M2 M3"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct"},
     1},
    {"its line is repeated all the same",
     {"R1 A M1 M2 M1 =", "R2 B M3 M4 M2 M3", "R3 A M5 M6 M5", "R4 B M7 M8 M6 M7"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R3 line R1 after R1", "R4 given M6 after R3"},
     3},
    {"a pruned fork point",
     {"R1 A M1 M2 M1 ?", "R2 A M3 M4 M3", "R3 B M5 M6 M2 M5"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct no-fork", "R2 line R1 no-line after R1", "R3 given M2 after R1"},
     3},
    {"a later run needs no fork point of its own",
     {"R1 A M1 M2 M1", "R2 A M3 M4 M3 ?"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R2 line R1 after R1"},
     2},
    {"a deleted agent",
     {"R1 A M1 M2 M1 x", "R2 B M3 M4 M2 M3"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct no-agent", "R2 given M2 after R1"},
     2},
    {"agents that ask agents",
     {"R1 A M1 M2 M1", "R2 B M2 M3 M2"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R2 trigger M2 after R1"},
     2},
    {"an agent asked by one that cannot be repeated",
     {"R1 A M1 M2 M1 x", "R2 B M2 M3 M2"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct no-agent", "R2 trigger M2 no-trigger after R1"},
     2},
    {"a plain run of an affected line",
     {"R1 A M1 M2 M1", "R2 A - M4 -"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R2 line R1 plain after R1"},
     2},
    {"tools with effects",
     {"R1 A M1 M2 M1", "R2 B M3 M4 M2 M3 !", "R3 C M5 M6 M2 M5"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct", "R2 given M2 effects after R1", "R3 given M2 after R1"},
     1},
    {"tools with effects in the first run",
     {"R1 A M1 M2 M1 !"},
     "M1/2",
     NULL,
     5,
     {"R1 trigger M1 direct effects"},
     0},
    {"runs that cannot be repeated need no approval and count for no limit",
     {"R1 A M1 M2 M1", "R2 B M3 M4 M1 M3 x!", "R3 C M5 M6 M1 M5"},
     "M1/2",
     NULL,
     1,
     {"R1 trigger M1 direct", "R2 given M1 no-agent", "R3 given M1"},
     3},
    {"a retry",
     {"R1 A M1 M2 M1", "R2 A M3 M4 M3", "R3 B M5 M6 M4 M5", "R4 C M7 M8 M2 M7"},
     NULL,
     "R2",
     5,
     {"R2 retry M4 direct", "R3 given M4 after R2"},
     2},
};

struct table {
    struct hd_cascade_past past[MOST];
    struct hd_cascade_pair given[MOST][MOST];
    struct hd_slice touched[MOST][MOST];
    size_t count;
};

static struct hd_slice word(const char **at)
{
    struct hd_slice s;

    while (**at == ' ')
        (*at)++;
    s = hd_slice(*at, strcspn(*at, " "));
    *at += s.len;
    return s;
}

static struct hd_slice name_of(struct hd_slice s)
{
    return hd_slice_eq(s, HD_S("-")) ? hd_slice(NULL, 0) : s;
}

static struct hd_cascade_pair pair_of(struct hd_slice s)
{
    const char *slash = memchr(s.ptr, '/', s.len);

    if (!slash)
        return (struct hd_cascade_pair){s, 1};
    return (struct hd_cascade_pair){hd_slice(s.ptr, (size_t)(slash - s.ptr)), slash[1] - '0'};
}

static void read_flags(struct hd_cascade_past *past, struct hd_slice flags)
{
    for (size_t i = 0; i < flags.len; i++) {
        past->has_effects |= flags.ptr[i] == '!';
        past->has_fork &= flags.ptr[i] != '?';
        past->has_agent &= flags.ptr[i] != 'x';
        past->has_equal_answer |= flags.ptr[i] == '=';
    }
}

static void read_run(struct table *t, size_t i, const char *text)
{
    struct hd_cascade_past *past = &t->past[i];

    *past = (struct hd_cascade_past){.has_fork = true, .has_agent = true};
    past->run_id = word(&text);
    past->line = word(&text);
    past->trigger = name_of(word(&text));
    past->answer = name_of(word(&text));
    for (struct hd_slice s = word(&text); s.len > 0; s = word(&text)) {
        if (s.ptr[0] == 'M')
            t->given[i][past->given_count++] = pair_of(s);
        else if (s.ptr[0] == '+')
            t->touched[i][past->touched_count++] = hd_slice(s.ptr + 1, s.len - 1);
        else
            read_flags(past, s);
    }
    past->given = t->given[i];
    past->touched = t->touched[i];
}

static void read_table(const struct plan_case *c, struct table *t)
{
    memset(t, 0, sizeof(*t));
    for (; t->count < MOST && c->runs[t->count]; t->count++)
        read_run(t, t->count, c->runs[t->count]);
}

static void write_step(struct hd_buf *out, const struct table *t,
                       const struct hd_cascade_answer *answer, size_t index)
{
    static const char *const blocks[] = {"",         " no-fork",    " no-agent",
                                         " no-line", " no-trigger", " plain"};
    static const char *const approvals[] = {"", " limit", " effects"};
    const struct hd_cascade_step *step = &answer->steps[index];
    const struct hd_slice run = t->past[step->past].run_id;
    int err =
        hd_buf_printf(out, "%.*s %s %.*s%s%s%s", (int)run.len, run.ptr, hd_cascade_whys[step->why],
                      (int)step->cause.len, step->cause.ptr, step->is_direct ? " direct" : "",
                      blocks[step->block], approvals[step->approval]);

    for (size_t i = 0; !err && i < step->after_count; i++) {
        struct hd_slice id = t->past[answer->steps[step->after[i]].past].run_id;

        err = hd_buf_printf(out, " after %.*s", (int)id.len, id.ptr);
    }
    assert_err(err, 0);
}

static struct hd_cascade_question ask(const struct plan_case *c, const struct table *t)
{
    struct hd_cascade_question question = {
        .past = t->past, .past_count = t->count, .limit = c->limit};

    if (c->edited)
        question.edited = pair_of(hd_slice_cstr(c->edited));
    if (c->retried)
        question.retried = hd_slice_cstr(c->retried);
    return question;
}

static void check_case(const struct plan_case *c)
{
    struct hd_cascade_answer answer;
    struct table t;
    struct hd_cascade_question question;
    struct hd_arena arena;
    size_t expected = 0;

    print_message("%s\n", c->name);
    read_table(c, &t);
    question = ask(c, &t);
    hd_arena_init(&arena, 1 << 20);
    assert_err(hd_cascade_plan(&question, &arena, &answer), 0);
    for (; expected < MOST && c->expected[expected]; expected++) {
        struct hd_buf text;

        assert_true(expected < answer.count);
        hd_buf_init(&text, 1000);
        write_step(&text, &t, &answer, expected);
        assert_slice(hd_buf_slice(&text), hd_slice_cstr(c->expected[expected]));
        hd_buf_fini(&text);
    }
    assert_int_equal(answer.count, expected);
    assert_int_equal(answer.free, c->free);
    hd_arena_fini(&arena);
}

static void a_plan_has_the_runs_that_depend_on_a_change(void **state)
{
    (void)state;
    for (size_t i = 0; i < HD_COUNT(cases); i++)
        check_case(&cases[i]);
}

static int plan_once(void *arg)
{
    struct hd_cascade_answer answer;
    struct table t;
    struct hd_cascade_question question;
    struct hd_arena arena;
    int err;

    read_table(arg, &t);
    question = ask(arg, &t);
    hd_arena_init(&arena, 1 << 20);
    err = hd_cascade_plan(&question, &arena, &answer);
    hd_arena_fini(&arena);
    return err;
}

static void a_plan_survives_the_lack_of_memory(void **state)
{
    struct plan_case c = cases[0];

    (void)state;
    assert_true(check_every_allocation(plan_once, &c) > 3);
}

static void a_block_has_a_sentence(void **state)
{
    (void)state;
    assert_null(hd_cascade_block_text(HD_CASCADE_FREE));
    for (int block = HD_CASCADE_NO_FORK; block <= HD_CASCADE_IS_PLAIN; block++)
        assert_non_null(hd_cascade_block_text((enum hd_cascade_block)block));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_has_the_runs_that_depend_on_a_change),
        cmocka_unit_test(a_plan_survives_the_lack_of_memory),
        cmocka_unit_test(a_block_has_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
