/* libFuzzer: any text as the header of a forwarded request, and any JSON with a valid code. What is
 * accepted can be written again, and is read as the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/forwarded_sign.h"

#define SELF HD_S("00000000-0000-4000-8000-00000000000b")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hd_forwarded_target target = {
    .method = HD_S_INIT("GET"), .path = HD_S_INIT("/"), .query = HD_S_INIT("")};

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Returns whether it was accepted. */
static bool try_header(const struct hd_forwarded_key *key, struct hd_slice text)
{
    struct hd_forwarded first, second;
    struct hd_arena arena;
    struct hd_buf again;
    bool is_good;

    hd_arena_init(&arena, (size_t)4 << 20);
    is_good = hd_forwarded_read(key, SELF, text, &target, &arena, &first) == 0;
    hd_buf_init(&again, SIZE_MAX);
    if (is_good && hd_forwarded_write(key, &first, &target, &again) == 0) {
        require(hd_forwarded_read(key, SELF, hd_buf_slice(&again), &target, &arena, &second) == 0,
                "it cannot be read again");
        require(hd_slice_eq(first.principal, second.principal) && first.role == second.role &&
                    !first.identity == !second.identity && !first.by == !second.by,
                "it is not the same");
        hd_forwarded_fini(&second);
    }
    hd_forwarded_fini(&first);
    hd_buf_fini(&again);
    hd_arena_fini(&arena);
    return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hd_forwarded_key key = {{1}};
    struct hd_buf text;

    require(!try_header(&key, hd_slice(data, size)), "the code of the header was guessed");
    hd_buf_init(&text, SIZE_MAX);
    if (sign_json(&key, hd_slice(data, size), &target, &text) == 0)
        (void)try_header(&key, hd_buf_slice(&text));
    hd_buf_fini(&text);
    return 0;
}
