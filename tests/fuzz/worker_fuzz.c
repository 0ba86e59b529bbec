/* libFuzzer: any head that a worker may send with a checkpoint. It is refused with an error text,
 * or read; the result has no secrets, and is written again as a readable message. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "value/val.h"
#include "worker/worker_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char secret[] = "open\"sesame";

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static bool has(struct hd_slice text, const char *needle)
{
    return text.len > 0 && memmem(text.ptr, text.len, needle, strlen(needle));
}

/* The tuple's head and blobs are read as `put` would be. */
static void write_again(struct heddle_value *values, size_t count, struct hd_arena *arena)
{
    const struct heddle_tuple tuple = {.id = {"i", 1},
                                       .checkpoint = {"{}", 2},
                                       .metadata = {"{}", 2},
                                       .values = values,
                                       .value_count = count};
    struct heddle_error fault = {0};
    struct hd_json json = {NULL};
    struct hd_rt_message message;
    struct heddle_value *again;
    struct hd_wire_out out;
    struct hd_wire_in in;
    struct hd_buf head;
    size_t found;

    hd_buf_init(&head, 1 << 24);
    require(hd_wire_init(&out, &head, arena, hd_wire_tuple_blobs(&tuple)) == 0, "no memory");
    hd_wire_tuple(&out, &tuple, HD_S(""));
    require(hd_jw_finish(&out.jw) == 0, "it cannot be written");
    require(hd_json_parse(&json, hd_buf_slice(&head), &fault) == 0, "it is not JSON");
    message = (struct hd_rt_message){hd_buf_slice(&head), out.blobs, out.count};
    in = (struct hd_wire_in){&message, hd_json_root(&json), arena, &fault};
    require(hd_wire_values(&in, &again, &found) == 0 && found == count, "it cannot be read");
    for (size_t i = 0; i < count; i++)
        require(hd_slice_eq(hd_from_public(again[i].data), hd_from_public(values[i].data)),
                "a value has changed");
    hd_json_fini(&json);
    hd_buf_fini(&head);
}

static void read_values(const struct hd_wire_in *in, const struct hd_hidden *hidden)
{
    struct heddle_value *values;
    size_t count;
    int err = hd_wire_values(in, &values, &count);

    require(!err || in->fault->text[0], "refused without a sentence");
    for (size_t i = 0; !err && i < count; i++) {
        require(hd_hidden_hide(hidden, &values[i], in->arena) == 0, "no memory");
        require(!has(hd_from_public(values[i].data), "open\\\"sesame") ||
                    !hd_slice_eq(hd_from_public(values[i].type), HD_S("hd1")),
                "a secret stays");
    }
    if (!err)
        write_again(values, count, in->arena);
}

static void read_metadata(const struct hd_wire_in *in, const struct hd_hidden *hidden)
{
    struct hd_slice text, out;
    struct hd_json json = {NULL};
    int err = hd_wire_text(in, "metadata", &text);

    if (!err)
        err = hd_hidden_metadata(hidden, text, NULL, "python", in->arena, &out, in->fault);
    require(!err || in->fault->text[0], "refused without a sentence");
    if (err)
        return;
    require(!has(out, "open\\\"sesame"), "a secret stays");
    require(has(out, "\"runtime\":\"python\""), "it does not say who wrote it");
    require(hd_json_parse(&json, out, NULL) == 0, "it is no longer JSON");
    hd_json_fini(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hd_slice blobs[] = {HD_S("[\"open\\\"sesame\"]"), HD_S("{\"a\":1}"), HD_S("")};
    struct hd_rt_message message = {hd_slice(data, size), blobs, HD_COUNT(blobs)};
    struct hd_val *secrets = hd_val_with(hd_val_object(), HD_S("heddle:secret:the \"door\""),
                                         hd_val_string(hd_slice_cstr(secret)));
    struct heddle_error fault = {0}, other = {0};
    struct hd_hidden hidden;
    struct hd_json json = {NULL};
    struct hd_arena arena;
    struct hd_wire_in in;

    hd_arena_init(&arena, 1 << 26);
    require(hd_hidden_init(&hidden, secrets, &arena) == 0 && hidden.count == 1, "no memory");
    if (hd_json_parse(&json, message.head, NULL) == 0) {
        in = (struct hd_wire_in){&message, hd_json_root(&json), &arena, &fault};
        read_values(&in, &hidden);
        in.fault = &other;
        read_metadata(&in, &hidden);
    }
    hd_json_fini(&json);
    hd_arena_fini(&arena);
    hd_val_unref(secrets);
    return 0;
}
