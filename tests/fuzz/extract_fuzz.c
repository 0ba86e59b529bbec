/* libFuzzer: any text as an `extract` path. It is refused with an error text, or selects a value of
 * the thread or nothing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "records/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char thread[] = "{\"values\":{\"a\":[[1,[2]],{\"b\":3}],\"\":{\"c\":null}}}";

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void follow(const struct hd_extract *extract)
{
    struct hd_json json;

    require(hd_json_parse(&json, hd_slice_cstr(thread), NULL) == 0, "a bad thread");
    for (size_t i = 0; i < extract->count; i++) {
        const struct hd_extract_path *path = &extract->paths[i];
        hd_json_val found =
            hd_extract_find(path, hd_json_get(hd_json_root(&json), hd_extract_member(path)));

        require(!found || hd_json_type(found) != HD_JSON_NONE, "a strange value");
    }
    hd_json_fini(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_extract extract;
    struct heddle_error fault = {0};
    struct hd_arena arena;
    struct hd_json json;
    struct hd_buf text;
    int err;

    hd_buf_init(&text, 1 << 24);
    hd_arena_init(&arena, 1 << 20);
    err = hd_buf_printf(&text, "{\"it\":");
    if (err == 0)
        err = hd_json_write_string(&text, hd_slice(data, size));
    if (err == 0)
        err = hd_buf_append_byte(&text, '}');
    require(err == 0 && hd_json_parse(&json, hd_buf_slice(&text), NULL) == 0, "bad JSON");
    err = hd_extract_parse(&extract, hd_json_root(&json), &arena, &fault);
    require(err == 0 || (err == HD_EINVAL && fault.text[0]), "an odd error");
    if (err == 0)
        follow(&extract);
    hd_json_fini(&json);
    hd_arena_fini(&arena);
    hd_buf_fini(&text);
    return 0;
}
