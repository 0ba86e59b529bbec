#include "config/ttl.h"

#include <stdio.h>
#include <stdlib.h>

#define US_PER_MINUTE 60e6
#define MAX_MINUTES 1e9

const char *const hd_ttl_strategies[] = {[HD_TTL_DELETE] = "delete",
                                         [HD_TTL_KEEP_LATEST] = "keep_latest",
                                         [HD_TTL_KEEP_BRANCHES] = "keep_branches",
                                         NULL};

static bool find_strategy(struct hd_slice name, enum hd_ttl_strategy *out)
{
    for (int i = 0; hd_ttl_strategies[i]; i++) {
        if (hd_slice_eq(name, hd_slice_cstr(hd_ttl_strategies[i]))) {
            *out = (enum hd_ttl_strategy)i;
            return true;
        }
    }
    return false;
}

static bool read_keep_last(hd_json_val val, size_t *out)
{
    int64_t number;

    if (!hd_json_int(val, &number) || number < 1 || number > HD_KEEP_LAST_MAX)
        return false;
    *out = (size_t)number;
    return true;
}

struct hd_ttl hd_ttl_read(struct hd_slice text)
{
    struct hd_ttl ttl = {.keep_last = 1};
    struct hd_json json = {NULL};
    hd_json_val root, sliding;
    double minutes;

    if (text.len == 0 || hd_json_parse(&json, text, NULL))
        return ttl;
    root = hd_json_root(&json);
    sliding = hd_json_get(root, HD_S("sliding"));
    if (hd_json_double(hd_json_get(root, HD_S("ttl")), &minutes) && minutes > 0 &&
        minutes < MAX_MINUTES)
        ttl.minutes = minutes;
    (void)find_strategy(hd_json_string(hd_json_get(root, HD_S("strategy"))), &ttl.strategy);
    (void)read_keep_last(hd_json_get(root, HD_S("keep_last")), &ttl.keep_last);
    ttl.is_fixed = hd_json_is_bool(sliding) && !hd_json_is_true(sliding);
    hd_json_fini(&json);
    return ttl;
}

/* The shortest form with the same value. */
static void write_number(double number, char *out, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, number);
        if (strtod(out, NULL) == number)
            break;
    }
}

int hd_ttl_write(const struct hd_ttl *ttl, struct hd_arena *arena, struct hd_slice *out)
{
    char last[40] = "", minutes[40];
    char *text;

    *out = hd_slice(NULL, 0);
    if (ttl->minutes <= 0)
        return 0;
    if (ttl->strategy == HD_TTL_KEEP_BRANCHES)
        snprintf(last, sizeof(last), ",\"keep_last\":%zu", ttl->keep_last);
    write_number(ttl->minutes, minutes, sizeof(minutes));
    text = hd_arena_printf(arena, "{\"ttl\":%s,\"strategy\":\"%s\"%s%s}", minutes,
                           hd_ttl_strategies[ttl->strategy], last,
                           ttl->is_fixed ? ",\"sliding\":false" : "");
    *out = hd_slice_cstr(text);
    return text ? 0 : HD_ENOMEM;
}

static int refuse_ttl(struct heddle_error *fault)
{
    return hd_error_set(fault, HD_EINVAL,
                        "ttl: expected a number of minutes (0: no expiry), or an object with "
                        "\"ttl\" (such a number), \"strategy\" (\"delete\", \"keep_latest\" or "
                        "\"keep_branches\"), \"keep_last\" (at least 1) and \"sliding\"");
}

static bool is_given(hd_json_val val)
{
    return val && !hd_json_is_null(val);
}

int hd_ttl_parse(const struct hd_config *config, hd_json_val val, struct hd_ttl *out,
                 struct heddle_error *fault)
{
    bool is_object = hd_json_is_object(val);
    hd_json_val number = is_object ? hd_json_get(val, HD_S("ttl")) : val;
    hd_json_val strategy = is_object ? hd_json_get(val, HD_S("strategy")) : NULL;
    hd_json_val last = is_object ? hd_json_get(val, HD_S("keep_last")) : NULL;
    hd_json_val sliding = is_object ? hd_json_get(val, HD_S("sliding")) : NULL;

    *out = (struct hd_ttl){.keep_last = (size_t)config->ttl_keep_last,
                           .is_fixed = !config->ttl_sliding};
    if (is_object && !is_given(sliding))
        sliding = hd_json_get(val, HD_S("refresh"));
    if (!hd_json_double(number, &out->minutes) || !(out->minutes >= 0) ||
        (is_given(strategy) && !find_strategy(hd_json_string(strategy), &out->strategy)) ||
        (is_given(last) && !read_keep_last(last, &out->keep_last)) ||
        (is_given(sliding) && !hd_json_is_bool(sliding)))
        return refuse_ttl(fault);
    if (is_given(sliding))
        out->is_fixed = !hd_json_is_true(sliding);
    if (out->minutes > MAX_MINUTES)
        out->minutes = MAX_MINUTES; /* no expiry */
    return 0;
}

int hd_ttl_standard(const struct hd_config *config, struct hd_arena *arena, struct hd_slice *out)
{
    const struct hd_ttl ttl = {.minutes = (double)config->ttl_threads_us / US_PER_MINUTE,
                               .strategy = (enum hd_ttl_strategy)config->ttl_strategy,
                               .keep_last = (size_t)config->ttl_keep_last,
                               .is_fixed = !config->ttl_sliding};

    return hd_ttl_write(&ttl, arena, out);
}
