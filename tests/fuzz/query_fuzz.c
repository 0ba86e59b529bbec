/* libFuzzer: query strings. An accepted one is UTF-8 without NUL, and every reader gives a value or
 * an error with a text. */
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "http/query.h"

static void require(bool is_true)
{
    if (!is_true)
        abort();
}

static void check_text(struct hd_slice s)
{
    const char *pos = s.ptr, *end = s.ptr + s.len;

    while (pos < end) {
        size_t len = hd_utf8_char(pos, end);

        require(len > 0 && *pos != '\0');
        pos += len;
    }
}

static void read_all(const struct hd_params *params, struct hd_slice name, struct hd_arena *arena)
{
    struct heddle_error list_fault = {0}, bool_fault = {0}, int_fault = {0};
    struct hd_slice *items, value;
    int64_t number = 7;
    bool flag = false;
    size_t count;
    int err;

    err = hd_params_list(params, name, arena, &items, &count, &list_fault);
    require(err == 0 || err == HD_ENOMEM || err == list_fault.code);
    for (size_t i = 0; !err && i < count; i++)
        check_text(items[i]);
    err = hd_params_bool(params, name, true, &flag, &bool_fault);
    require(err == bool_fault.code);
    require(hd_params_get(params, name, &value) || (!err && flag));
    err = hd_params_int(params, name, -5, 1000, 7, &number, &int_fault);
    require(err == int_fault.code && number >= -5 && number <= 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heddle_error fault = {0};
    struct hd_params params = {0};
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, (size_t)1 << 22);
    err = hd_params_parse(&params, hd_slice(data, size), &arena, &fault);
    require(err == HD_ENOMEM || err == fault.code);
    for (size_t i = 0; !err && i < params.count; i++) {
        check_text(params.pairs[i].name);
        check_text(params.pairs[i].value);
        read_all(&params, params.pairs[i].name, &arena);
    }
    hd_arena_fini(&arena);
    return 0;
}
