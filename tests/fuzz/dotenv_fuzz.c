/* libFuzzer: any bytes as a .env file. It is accepted, or refused with a line number. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/dotenv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static const char *look_up(void *ctx, const char *name)
{
    (void)ctx;
    return name[0] == 'A' ? "value" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heddle_error fault = {0};
    struct hd_dotenv env;
    struct hd_arena arena;
    int err;

    hd_arena_init(&arena, (size_t)64 << 20);
    err = hd_dotenv_parse(hd_slice(data, size), look_up, NULL, &arena, &env, &fault);
    require(err == 0 || err == HD_EINVAL || err == HD_ENOMEM, "an odd error");
    require(err != HD_EINVAL || fault.text[0], "refused without a reason");
    for (size_t i = 0; i < env.count; i++) {
        require(hd_dotenv_is_name(hd_slice_cstr(env.items[i].name)), "an odd name");
        require(strlen(env.items[i].value) <= HD_DOTENV_MAX_VALUE, "a value that is too long");
    }
    hd_arena_fini(&arena);
    return 0;
}
