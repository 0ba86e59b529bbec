/* libFuzzer: a parsed value can be written, and reads back as the same value and text; any bytes
 * become a readable JSON string. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"

#define LIMIT ((size_t)1 << 26)

static void require(bool is_true)
{
    if (!is_true)
        abort();
}

static void write_and_read_again(hd_json_val val)
{
    struct hd_json again;
    struct hd_buf first, second;

    hd_buf_init(&first, LIMIT);
    hd_buf_init(&second, LIMIT);
    require(hd_json_write_val(&first, val) == 0);
    require(hd_json_parse(&again, hd_buf_slice(&first), NULL) == 0);
    require(hd_json_equal(val, hd_json_root(&again)));
    require(hd_json_equal(hd_json_root(&again), val));
    require(hd_json_contains(val, hd_json_root(&again)));
    require(hd_json_write_val(&second, hd_json_root(&again)) == 0);
    require(hd_slice_eq(hd_buf_slice(&first), hd_buf_slice(&second)));
    hd_json_fini(&again);
    hd_buf_fini(&first);
    hd_buf_fini(&second);
}

static void quote(struct hd_slice bytes)
{
    struct hd_json json;
    struct hd_buf out;

    hd_buf_init(&out, LIMIT);
    require(hd_json_write_string(&out, bytes) == 0);
    require(hd_json_parse(&json, hd_buf_slice(&out), NULL) == 0);
    require(hd_json_is_string(hd_json_root(&json)));
    hd_json_fini(&json);
    hd_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice bytes = hd_slice(data, size);
    struct heddle_error fault = {0};
    struct hd_json json;
    int err;

    quote(bytes);
    err = hd_json_parse(&json, bytes, &fault);
    require(err == fault.code);
    if (!err)
        write_and_read_again(hd_json_root(&json));
    hd_json_fini(&json);
    return 0;
}
