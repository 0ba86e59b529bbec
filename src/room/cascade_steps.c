#include "room/cascade_steps.h"

#include <string.h>

#include "base/buf.h"

#define MAX_PLAN ((size_t)64 << 20)

const char *const hd_cascade_states[] = {
    [HD_CASCADE_STEP_WAITING] = "waiting",
    [HD_CASCADE_STEP_RUNNING] = "running",
    [HD_CASCADE_STEP_DONE] = "done",
    [HD_CASCADE_STEP_QUESTION] = "question",
    [HD_CASCADE_STEP_FAILED] = "failed",
    [HD_CASCADE_STEP_SKIPPED] = "skipped",
    NULL,
};

static const char *const approval_names[] = {
    [HD_CASCADE_GOES] = "",
    [HD_CASCADE_OVER_LIMIT] = "limit",
    [HD_CASCADE_EFFECTS] = "effects",
    NULL,
};

static const char not_approved[] = "it was not approved";
static const char not_before[] = "an earlier run was not approved";
static const char joined_late[] = "it began after the edit, and the limit is reached";

/* ---- reading ---------------------------------------------------------- */

static bool find_word(const char *const *words, struct hd_slice word, int *out)
{
    for (int i = 0; words[i]; i++) {
        if (hd_slice_eq(hd_slice_cstr(words[i]), word)) {
            *out = i;
            return true;
        }
    }
    return false;
}

static int copy_member_text(hd_json_val step, const char *name, struct hd_arena *arena,
                            struct hd_slice *out)
{
    return hd_arena_copy(arena, hd_json_string(hd_json_get(step, hd_slice_cstr(name))), out);
}

static int copy_texts(hd_json_val step, struct hd_arena *arena, struct hd_cascade_entry *out)
{
    const struct {
        const char *name;
        struct hd_slice *to;
    } texts[] = {
        {"run_id", &out->run_id},
        {"assistant_id", &out->assistant_id},
        {"trigger", &out->trigger},
        {"answer", &out->answer},
        {"cause", &out->cause},
        {"blocked", &out->blocked},
        {"new_run_id", &out->new_run_id},
        {"new_answer", &out->new_answer},
        {"question", &out->question},
        {"reply", &out->reply},
        {"fork", &out->fork},
    };
    int err = 0;

    for (size_t i = 0; !err && i < HD_COUNT(texts); i++)
        err = copy_member_text(step, texts[i].name, arena, texts[i].to);
    return err;
}

static int copy_json(hd_json_val val, struct hd_arena *arena, struct hd_slice *out)
{
    struct hd_buf text;
    int err = 0;

    *out = hd_slice(NULL, 0);
    if (!val || hd_json_is_null(val))
        return 0;
    hd_buf_init(&text, MAX_PLAN);
    err = hd_json_write_val(&text, val);
    if (!err)
        err = hd_arena_copy(arena, hd_buf_slice(&text), out);
    hd_buf_fini(&text);
    return err;
}

static int read_after(hd_json_val list, size_t index, struct hd_arena *arena,
                      struct hd_cascade_entry *out)
{
    struct hd_json_iter it = hd_json_iter(list);
    size_t *after = hd_arena_calloc(arena, hd_json_size(list) + 1, sizeof(*after));
    int64_t value;

    if (!after)
        return HD_ENOMEM;
    out->after = after;
    while (hd_json_next(&it)) {
        if (!hd_json_int(it.val, &value) || value < 0 || (size_t)value >= index)
            return HD_ECORRUPT;
        after[out->after_count++] = (size_t)value;
    }
    return 0;
}

static int read_entry(hd_json_val step, size_t index, struct hd_arena *arena,
                      struct hd_cascade_entry *out)
{
    int why = 0, state = 0, approval = 0;
    int err = copy_texts(step, arena, out);

    if (err)
        return err;
    if (!find_word(hd_cascade_whys, hd_json_string(hd_json_get(step, HD_S("why"))), &why) ||
        !find_word(hd_cascade_states, hd_json_string(hd_json_get(step, HD_S("status"))), &state) ||
        !find_word(approval_names, hd_json_string(hd_json_get(step, HD_S("approval"))), &approval))
        return HD_ECORRUPT;
    out->why = (enum hd_cascade_why)why;
    out->state = (enum hd_cascade_state)state;
    out->approval = (enum hd_cascade_approval)approval;
    out->is_approved = hd_json_is_true(hd_json_get(step, HD_S("approved")));
    out->is_joined = hd_json_is_true(hd_json_get(step, HD_S("joined")));
    out->is_equal = hd_json_is_true(hd_json_get(step, HD_S("equal")));
    err = copy_json(hd_json_get(step, HD_S("tools")), arena, &out->tools);
    if (!err)
        err = copy_json(hd_json_get(step, HD_S("resume")), arena, &out->resume);
    return err ? err : read_after(hd_json_get(step, HD_S("after")), index, arena, out);
}

static int read_entries(hd_json_val steps, struct hd_arena *arena, struct hd_cascade_list *out)
{
    struct hd_json_iter it = hd_json_iter(steps);
    int err = hd_json_is_array(steps) ? 0 : HD_ECORRUPT;

    out->items = hd_arena_calloc(arena, hd_json_size(steps) + 1, sizeof(*out->items));
    if (!err && !out->items)
        err = HD_ENOMEM;
    while (!err && hd_json_next(&it)) {
        err = read_entry(it.val, out->count, arena, &out->items[out->count]);
        out->count++;
    }
    return err;
}

int hd_cascade_steps_read(struct hd_slice plan, struct hd_arena *arena, struct hd_cascade_list *out,
                          struct heddle_error *fault)
{
    struct hd_json json = {NULL};
    int err;

    *out = (struct hd_cascade_list){NULL, 0};
    if (plan.len == 0)
        return 0;
    err = hd_json_parse(&json, plan, fault);
    if (!err)
        err = read_entries(hd_json_root(&json), arena, out);
    hd_json_fini(&json);
    return err == HD_ECORRUPT || err == HD_EINVAL
               ? hd_error_set(fault, HD_ECORRUPT, "the plan of a cascade is damaged")
               : err;
}

/* ---- writing ---------------------------------------------------------- */

static void put_flag(struct hd_jw *jw, const char *name, bool value)
{
    if (value)
        hd_jw_put_bool(jw, name, true);
}

static void put_if(struct hd_jw *jw, const char *name, struct hd_slice text)
{
    if (text.len > 0)
        hd_jw_put_string(jw, name, text);
}

/* Clients read the value of a reply in its message. */
static void put_entry(struct hd_jw *jw, const struct hd_cascade_entry *entry, bool is_record)
{
    hd_jw_object(jw);
    hd_jw_put_string(jw, "run_id", entry->run_id);
    hd_jw_put_string(jw, "assistant_id", entry->assistant_id);
    hd_jw_put_string_or_null(jw, "trigger", entry->trigger);
    hd_jw_put_string_or_null(jw, "answer", entry->answer);
    hd_jw_put_string(jw, "why", hd_slice_cstr(hd_cascade_whys[entry->why]));
    hd_jw_put_string_or_null(jw, "cause", entry->cause);
    hd_jw_put_string_or_null(jw, "approval", hd_slice_cstr(approval_names[entry->approval]));
    hd_jw_put_string_or_null(jw, "blocked", entry->blocked);
    hd_jw_put_raw_or(jw, "tools", entry->tools, "[]");
    hd_jw_put_array(jw, "after");
    for (size_t i = 0; i < entry->after_count; i++)
        hd_jw_int(jw, (int64_t)entry->after[i]);
    hd_jw_array_end(jw);
    hd_jw_put_string(jw, "status", hd_slice_cstr(hd_cascade_states[entry->state]));
    hd_jw_put_string_or_null(jw, "new_run_id", entry->new_run_id);
    hd_jw_put_string_or_null(jw, "new_answer", entry->new_answer);
    put_if(jw, "question", entry->question);
    put_if(jw, "reply", entry->reply);
    put_if(jw, "fork", entry->fork);
    if (is_record && entry->resume.len > 0)
        hd_jw_put_raw(jw, "resume", entry->resume);
    put_flag(jw, "approved", entry->is_approved);
    put_flag(jw, "joined", entry->is_joined);
    put_flag(jw, "equal", entry->is_equal);
    hd_jw_object_end(jw);
}

static void put_entries(struct hd_jw *jw, const struct hd_cascade_list *list, bool is_record)
{
    hd_jw_array(jw);
    for (size_t i = 0; i < list->count; i++)
        put_entry(jw, &list->items[i], is_record);
    hd_jw_array_end(jw);
}

void hd_cascade_steps_put(struct hd_jw *jw, const struct hd_cascade_list *list)
{
    put_entries(jw, list, false);
}

int hd_cascade_steps_write(const struct hd_cascade_list *list, struct hd_arena *arena,
                           struct hd_slice *out)
{
    struct hd_buf text;
    struct hd_jw jw;

    hd_buf_init(&text, MAX_PLAN);
    hd_jw_init(&jw, &text);
    put_entries(&jw, list, true);
    return hd_jw_finish_in(&jw, arena, out);
}

/* ---- merging ---------------------------------------------------------- */

struct hd_cascade_entry *hd_cascade_steps_find(const struct hd_cascade_list *list,
                                               struct hd_slice run_id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (hd_slice_eq(list->items[i].run_id, run_id))
            return &list->items[i];
    }
    return NULL;
}

/* The step of a run in the new plan; NULL: none. `from` is where the search begins. */
static const struct hd_cascade_step *find_step(const struct hd_cascade_answer *plan, size_t past,
                                               size_t *from)
{
    while (*from < plan->count && plan->steps[*from].past < past)
        ++*from;
    return *from < plan->count && plan->steps[*from].past == past ? &plan->steps[*from] : NULL;
}

static void describe_run(const struct hd_cascade_news *news, size_t index,
                         struct hd_cascade_entry *out)
{
    const struct hd_cascade_past *past = &news->past[index];

    out->run_id = past->run_id;
    out->assistant_id = news->extras[index].assistant_id;
    out->trigger = past->trigger;
    out->answer = past->answer;
    out->tools = news->extras[index].tools;
    out->is_in_flight = news->extras[index].is_in_flight;
}

/* `places`: of each step of the plan, its index in the merged list. */
static int copy_step(const struct hd_cascade_step *step, const size_t *places,
                     struct hd_arena *arena, struct hd_cascade_entry *out)
{
    const char *blocked = hd_cascade_block_text(step->block);
    size_t *after = hd_arena_calloc(arena, step->after_count + 1, sizeof(*after));

    if (!after)
        return HD_ENOMEM;
    for (size_t i = 0; i < step->after_count; i++)
        after[i] = places[step->after[i]];
    out->after = after;
    out->after_count = step->after_count;
    out->why = step->why;
    out->cause = step->cause;
    out->approval = step->approval;
    if (out->state == HD_CASCADE_STEP_WAITING)
        out->blocked = hd_slice_cstr(blocked);
    return 0;
}

struct step_merging {
    const struct hd_cascade_list *recorded;
    const struct hd_cascade_news *news;
    struct hd_arena *arena;
    size_t *places;
    struct hd_cascade_list *out;
};

static int merge_run(struct step_merging *m, size_t index, const struct hd_cascade_step *step)
{
    const struct hd_cascade_entry *old =
        hd_cascade_steps_find(m->recorded, m->news->past[index].run_id);
    struct hd_cascade_entry entry = {.state = HD_CASCADE_STEP_WAITING};

    if (!step && (!old || old->state == HD_CASCADE_STEP_WAITING))
        return 0;
    if (old)
        entry = *old;
    entry.after_count = 0;
    entry.is_joined = old ? old->is_joined : !m->news->is_first;
    describe_run(m->news, index, &entry);
    if (step) {
        int err = copy_step(step, m->places, m->arena, &entry);

        if (err)
            return err;
        m->places[step - m->news->plan->steps] = m->out->count;
    }
    m->out->items[m->out->count++] = entry;
    return 0;
}

int hd_cascade_steps_merge(const struct hd_cascade_list *recorded,
                           const struct hd_cascade_news *news, struct hd_arena *arena,
                           struct hd_cascade_list *out)
{
    struct step_merging m = {.recorded = recorded, .news = news, .arena = arena, .out = out};
    size_t most = recorded->count + news->plan->count, from = 0;
    int err = 0;

    *out = (struct hd_cascade_list){hd_arena_calloc(arena, most + 1, sizeof(*out->items)), 0};
    m.places = hd_arena_calloc(arena, news->plan->count + 1, sizeof(*m.places));
    if (!out->items || !m.places)
        return HD_ENOMEM;
    for (size_t i = 0; !err && i < news->past_count; i++)
        err = merge_run(&m, i, find_step(news->plan, i, &from));
    return err;
}

/* ---- deciding --------------------------------------------------------- */

static void skip_step(struct hd_cascade_entry *entry, const char *why)
{
    entry->state = HD_CASCADE_STEP_SKIPPED;
    if (entry->blocked.len == 0)
        entry->blocked = hd_slice_cstr(why);
}

void hd_cascade_steps_approve(struct hd_cascade_list *list, struct hd_slice up_to)
{
    bool is_behind = false;

    for (size_t i = 0; i < list->count; i++) {
        struct hd_cascade_entry *entry = &list->items[i];

        if (entry->state == HD_CASCADE_STEP_WAITING && is_behind)
            skip_step(entry, not_approved);
        else if (entry->state == HD_CASCADE_STEP_WAITING)
            entry->is_approved = true;
        is_behind |= up_to.len > 0 && hd_slice_eq(entry->run_id, up_to);
    }
}

void hd_cascade_steps_approve_joined(struct hd_cascade_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct hd_cascade_entry *entry = &list->items[i];

        if (entry->state == HD_CASCADE_STEP_WAITING && entry->is_joined &&
            entry->approval == HD_CASCADE_OVER_LIMIT)
            entry->is_approved = true;
    }
}

static bool is_refused(const struct hd_cascade_entry *entry)
{
    return entry->state == HD_CASCADE_STEP_SKIPPED &&
           (hd_slice_eq(entry->blocked, hd_slice_cstr(not_approved)) ||
            hd_slice_eq(entry->blocked, hd_slice_cstr(not_before)) ||
            hd_slice_eq(entry->blocked, hd_slice_cstr(joined_late)));
}

static bool is_step_over(const struct hd_cascade_entry *entry)
{
    return entry->state == HD_CASCADE_STEP_DONE || entry->state == HD_CASCADE_STEP_SKIPPED;
}

/* Sets *has_refused when an earlier step that it needs was refused. */
static bool may_follow(const struct hd_cascade_list *list, const struct hd_cascade_entry *entry,
                       bool *has_refused)
{
    bool may = true;

    *has_refused = false;
    for (size_t i = 0; i < entry->after_count; i++) {
        const struct hd_cascade_entry *before = &list->items[entry->after[i]];

        *has_refused |= is_refused(before);
        may &= is_step_over(before);
    }
    return may;
}

static void decide_waiting(struct hd_cascade_list *list, size_t index,
                           struct hd_cascade_decision *out)
{
    struct hd_cascade_entry *entry = &list->items[index];
    bool has_refused, may = may_follow(list, entry, &has_refused);

    if (entry->is_in_flight)
        out->in_flight++;
    else if (entry->blocked.len > 0)
        skip_step(entry, "");
    else if (has_refused)
        skip_step(entry, not_before);
    else if (entry->is_joined && !entry->is_approved && entry->approval == HD_CASCADE_OVER_LIMIT)
        skip_step(entry, joined_late);
    else if (!entry->is_approved && entry->approval != HD_CASCADE_GOES)
        out->unapproved++;
    else if (may)
        out->ready[out->ready_count++] = index;
}

int hd_cascade_steps_decide(struct hd_cascade_list *list, struct hd_arena *arena,
                            struct hd_cascade_decision *out)
{
    *out = (struct hd_cascade_decision){.is_complete = true};
    out->ready = hd_arena_calloc(arena, list->count + 1, sizeof(*out->ready));
    if (!out->ready)
        return HD_ENOMEM;
    for (size_t i = 0; i < list->count; i++) {
        bool is_question = list->items[i].state == HD_CASCADE_STEP_QUESTION;

        if (list->items[i].state == HD_CASCADE_STEP_WAITING)
            decide_waiting(list, i, out);
        else if (is_question && list->items[i].reply.len > 0)
            out->ready[out->ready_count++] = i;
        out->running += list->items[i].state == HD_CASCADE_STEP_RUNNING;
        out->questions += is_question && list->items[i].reply.len == 0;
        out->has_failed |= list->items[i].state == HD_CASCADE_STEP_FAILED;
        out->is_complete &= is_step_over(&list->items[i]);
    }
    return 0;
}
