/* libFuzzer: any bytes as text. Parsed text renders to JSON; written text is canonical and renders;
 * plain JSON reads back unchanged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/codec/canon.h"

#define LIMIT (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Renders canonical text and parses the result; the caller frees `json`. */
static void render(struct hd_slice text, struct hd_json *json)
{
    struct hd_buf out;

    hd_buf_init(&out, LIMIT);
    require(hd_canon_render(&out, text, NULL) == 0, "rendering failed");
    require(hd_json_parse(json, hd_buf_slice(&out), NULL) == 0, "rendered to what is not JSON");
    hd_buf_fini(&out);
}

static void render_and_forget(struct hd_slice text)
{
    struct hd_json json;

    render(text, &json);
    hd_json_fini(&json);
}

/* A round trip of plain JSON. A number with an exponent may be infinite, which JSON cannot
 * express. */
static void check_plain(struct hd_slice text, hd_json_val val)
{
    bool has_exponent = memchr(text.ptr, 'e', text.len) || memchr(text.ptr, 'E', text.len);
    struct hd_json back;
    struct hd_buf out;

    hd_buf_init(&out, LIMIT);
    if (hd_canon_from_json(&out, text, NULL) == 0) {
        require(hd_canon_validate(hd_buf_slice(&out), NULL) == 0, "from_json: not canonical");
        render(hd_buf_slice(&out), &back);
        require(has_exponent || hd_json_equal(hd_json_root(&back), val), "from_json: changed");
        hd_json_fini(&back);
    }
    hd_buf_fini(&out);
}

typedef int (*write_fn)(struct hd_jw *jw, hd_json_val val, struct heddle_error *fault);

static void check_writer(write_fn fn, hd_json_val val)
{
    struct hd_buf out;
    struct hd_jw jw;

    hd_buf_init(&out, LIMIT);
    hd_jw_init(&jw, &out);
    if (fn(&jw, val, NULL) == 0) {
        require(hd_canon_validate(hd_buf_slice(&out), NULL) == 0, "written: not canonical");
        render_and_forget(hd_buf_slice(&out));
    }
    hd_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_slice text = hd_slice(data, size);
    struct heddle_error fault = {0};
    struct hd_json json;
    int err = hd_canon_validate(text, &fault);

    require(err == 0 || err == HD_EINVAL, "an odd error");
    require(err == 0 || fault.text[0] != '\0', "refused without a reason");
    if (hd_json_parse(&json, text, NULL) != 0) {
        require(err != 0, "valid, but not JSON");
        return 0;
    }
    render_and_forget(text);
    check_plain(text, hd_json_root(&json));
    check_writer(hd_canon_write_message, hd_json_root(&json));
    check_writer(hd_canon_write_command, hd_json_root(&json));
    hd_json_fini(&json);
    return 0;
}
