/* libFuzzer: any JSON as the body of a state update, by values and by supersteps, and as a body for
 * the common member readers. A refusal leaks nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/state/supersteps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check(const struct hd_call *call, int err)
{
    require(err == 0 || (err == HD_EINVAL && call->fault.text[0]) || err == HD_ELIMIT,
            "an odd error");
}

static void read_supersteps(struct hd_call *call,
                            int (*read)(struct hd_call *call, struct hd_supersteps *out))
{
    struct hd_supersteps supersteps;
    int err;

    call->fault = (struct heddle_error){0};
    err = read(call, &supersteps);
    check(call, err);
    for (size_t i = 0; err == 0 && i < supersteps.count; i++)
        require(supersteps.list[i].count > 0, "a superstep without updates");
    hd_supersteps_fini(&supersteps);
}

static void read_members(struct hd_call *call)
{
    static const char *const words[] = {"pending", "running", "all", NULL};
    struct hd_slice text = {NULL, 0}, uuid, *list;
    hd_json_val object;
    int64_t number = 7;
    bool is_so = false;
    size_t count;
    int word = 2;

    call->fault = (struct heddle_error){0};
    check(call, hd_body_int(call, "limit", 1, 1000, &number));
    require(number >= 1 && number <= 1000, "a number out of bounds");
    call->fault = (struct heddle_error){0};
    check(call, hd_body_word(call, "status", words, &word));
    require(word >= 0 && word <= 2, "an unknown word");
    call->fault = (struct heddle_error){0};
    check(call, hd_body_strings(call, "run_ids", &list, &count));
    call->fault = (struct heddle_error){0};
    check(call, hd_body_object(call, "metadata", &object));
    call->fault = (struct heddle_error){0};
    check(call, hd_body_bool(call, "wait", &is_so));
    call->fault = (struct heddle_error){0};
    check(call, hd_body_string(call, "thread_id", &text));
    call->fault = (struct heddle_error){0};
    if (hd_call_uuid(call, "thread_id", text, &uuid) == 0)
        require(uuid.len == 36, "a short UUID");
    require(hd_call_text(call, call->body, &text) == 0 && text.len > 0, "a body without text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_call call = {.status = 200};
    struct hd_arena arena;

    if (hd_json_parse(&call.json, hd_slice(data, size), NULL) != 0)
        return 0;
    hd_arena_init(&arena, (size_t)256 << 20);
    call.arena = &arena;
    call.body = hd_json_root(&call.json);
    if (hd_json_is_object(call.body)) {
        read_supersteps(&call, hd_supersteps_read);
        read_supersteps(&call, hd_supersteps_read_values);
        read_members(&call);
    }
    hd_arena_fini(&arena);
    hd_json_fini(&call.json);
    return 0;
}
