/* libFuzzer: any bytes as the configuration file or, when they begin with a dash, as one flag. It
 * is accepted, or refused with an error text. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check(int err, const struct heddle_error *fault)
{
    require(err == 0 || err == HD_EINVAL || err == HD_ENOMEM, "an odd error");
    require(err == 0 || fault->text[0], "refused without a reason");
}

static void read_flag(const uint8_t *data, size_t size)
{
    struct hd_config config;
    struct heddle_error fault = {0};
    char command[] = "serve", flag[1024] = "";
    char *argv[] = {command, flag, NULL};
    int err;

    memcpy(flag, data, size < sizeof(flag) - 1 ? size : sizeof(flag) - 1);
    /* The fuzzer must not read files. */
    if (strncmp(flag, "--config", 8) == 0)
        return;
    err = hd_config_load(&config, &(struct hd_config_source){2, argv, NULL}, &fault);
    check(err, &fault);
    if (err == 0)
        hd_config_fini(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_config config = {0};
    struct heddle_error fault = {0};

    if (size > 0 && data[0] == '-') {
        read_flag(data, size);
        return 0;
    }
    hd_arena_init(&config.arena, 8 << 20);
    check(hd_config_read_json(&config, "a/b.json", hd_slice(data, size), &fault), &fault);
    hd_config_fini(&config);
    return 0;
}
