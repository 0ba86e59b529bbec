/* libFuzzer: any bytes as an expression over a state with values of all types. A compiled
 * expression has a result within the limits, the same one every time, and it can be written as
 * canonical text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/decl/graph.h"
#include "graph/expr/expr.h"
#include "store/codec/canon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static const struct hd_slice names[] = {
    HD_S_INIT("s"), HD_S_INIT("n"), HD_S_INIT("f"), HD_S_INIT("l"),
    HD_S_INIT("o"), HD_S_INIT("m"), HD_S_INIT("z"), HD_S_INIT("e"),
};

/* `e` has no value. */
static const char *const values[] = {
    "\"a\xc3\xa9 text\"",
    "42",
    "-1.5",
    "[1,\"two\",[3],null]",
    "{\"a\":{\"b\":[1]},\"c\":\"d\"}",
    "[{\"$\":\"message\",\"type\":\"human\",\"content\":\"hi\",\"id\":\"m1\"}]",
    "null",
    NULL,
};

static void evaluate(const struct hd_expr *expr, const struct hd_scope *scope, struct hd_buf *out)
{
    struct hd_val *val = NULL;
    int err = hd_expr_eval(expr, scope, &val);

    hd_buf_init(out, (size_t)256 << 20);
    require(err == 0 || err == HD_ELIMIT, "an odd error");
    if (err == 0) {
        err = hd_val_write(out, val);
        require(err == 0 || err == HD_ELIMIT, "a value that cannot be written");
    }
    if (err == 0)
        require(hd_canon_validate(hd_buf_slice(out), NULL) == 0, "a value that is not canonical");
    hd_val_unref(val);
}

static void evaluate_twice(const struct hd_expr *expr)
{
    struct hd_val *channels[HD_COUNT(names)] = {0};
    struct hd_scope scope = {.channels = channels, .channel_count = HD_COUNT(names)};
    struct hd_buf first, second;

    for (size_t i = 0; i < HD_COUNT(names); i++) {
        if (values[i])
            require(hd_val_parse(hd_slice_cstr(values[i]), &channels[i], NULL) == 0, "a bad value");
    }
    evaluate(expr, &scope, &first);
    evaluate(expr, &scope, &second);
    require(hd_slice_eq(hd_buf_slice(&first), hd_buf_slice(&second)), "two different results");
    hd_buf_fini(&first);
    hd_buf_fini(&second);
    for (size_t i = 0; i < HD_COUNT(names); i++)
        hd_val_unref(channels[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_graph_error error = {0};
    struct hd_decl_expr_alone *alone;
    int err = hd_decl_expr_create(hd_slice(data, size), names, HD_COUNT(names), &alone, &error);

    require(err == 0 || err == HD_EINVAL, "an odd error");
    require(err == 0 || error.text[0], "refused without a reason");
    if (err != 0)
        return 0;
    evaluate_twice(hd_decl_expr_of(alone));
    hd_decl_expr_destroy(alone);
    return 0;
}
