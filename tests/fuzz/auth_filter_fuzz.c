/* libFuzzer: any JSON as a filter of a handler. An accepted filter gives the same result twice, and
 * means the same in an $and of itself. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "auth/auth_filter.h"
#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char value[] = "{\"a\":1,\"b\":\"x\",\"c\":[1,2],\"d\":{\"e\":null,\"f\":1e300}}";

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* {"$and": [filter]} */
static void wrap(struct hd_json *out, hd_json_val filter)
{
    struct hd_buf buf;
    struct hd_jw jw;

    hd_buf_init(&buf, SIZE_MAX);
    hd_jw_init(&jw, &buf);
    hd_jw_object(&jw);
    hd_jw_put_array(&jw, "$and");
    hd_jw_val(&jw, filter);
    hd_jw_array_end(&jw);
    hd_jw_object_end(&jw);
    if (hd_jw_finish(&jw) || hd_json_parse(out, hd_buf_slice(&buf), NULL))
        out->doc = NULL; /* too deep */
    hd_buf_fini(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_json filter = {NULL}, whole = {NULL}, wrapped = {NULL};
    struct heddle_error fault = {0};
    hd_json_val root;
    int err;

    if (hd_json_parse(&filter, hd_slice(data, size), NULL) != 0)
        return 0;
    require(hd_json_parse(&whole, hd_slice_cstr(value), NULL) == 0, "a bad value");
    root = hd_json_root(&filter);
    err = hd_auth_filter_check(root, &fault);
    require(err == 0 || (err == HD_EINVAL && fault.text[0]), "an odd error");
    if (err == 0) {
        bool is_allowed = hd_auth_filter_allows(root, hd_json_root(&whole));

        require(is_allowed == hd_auth_filter_allows(root, hd_json_root(&whole)), "two answers");
        wrap(&wrapped, root);
        if (wrapped.doc && hd_auth_filter_check(hd_json_root(&wrapped), NULL) == 0)
            require(is_allowed ==
                        hd_auth_filter_allows(hd_json_root(&wrapped), hd_json_root(&whole)),
                    "another answer in a group");
    }
    hd_json_fini(&wrapped);
    hd_json_fini(&filter);
    hd_json_fini(&whole);
    return 0;
}
