/* libFuzzer: any JSON as a filter, and as the value it is applied to. An accepted filter gives the
 * same result twice, and one without operators matches itself. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "records/item_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char value[] = "{\"a\":1,\"b\":\"x\",\"c\":[1,2],\"d\":{\"e\":null,\"f\":1e300}}";

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Of a key that occurs twice, a lookup finds the first. */
static bool has_doubled_keys(hd_json_val val)
{
    struct hd_json_iter it = hd_json_iter(val);

    while (hd_json_next(&it)) {
        if ((hd_json_is_object(val) && hd_json_get(val, it.key) != it.val) ||
            has_doubled_keys(it.val))
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heddle_error fault = {0};
    struct hd_json filter, whole;
    hd_json_val root;
    int err;

    if (hd_json_parse(&filter, hd_slice(data, size), NULL) != 0)
        return 0;
    require(hd_json_parse(&whole, hd_slice_cstr(value), NULL) == 0, "a bad value");
    root = hd_json_root(&filter);
    err = hd_filter_check(root, &fault);
    require(err == 0 || (err == HD_EINVAL && fault.text[0]), "an odd error");
    if (err == 0) {
        bool is_plain = !memchr(data, '$', size) && !memchr(data, '\\', size);

        require(hd_filter_matches(root, hd_json_root(&whole)) ==
                    hd_filter_matches(root, hd_json_root(&whole)),
                "two answers");
        require(!is_plain || has_doubled_keys(root) || hd_filter_matches(root, root),
                "a plain filter that does not match itself");
    }
    hd_json_fini(&filter);
    hd_json_fini(&whole);
    return 0;
}
