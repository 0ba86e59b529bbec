/* libFuzzer: any JSON as the body that requests a run. An accepted body has valid members, a
 * refusal has a reason, and an accepted command can be built. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "records/run_command.h"
#include "records/run_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static bool is_object_or_none(hd_json_val val)
{
    return !val || hd_json_is_object(val);
}

static void check_taken(const struct hd_run_request *request)
{
    require(request->assistant_id.len > 0, "no assistant");
    require(request->modes != 0, "no mode");
    require(request->delay_us >= 0, "a run in the past");
    require(is_object_or_none(request->config), "a config that is no object");
    require(is_object_or_none(request->configurable), "a configurable that is no object");
    require(is_object_or_none(request->metadata), "metadata that are no object");
    require(is_object_or_none(request->command), "a command that is no object");
    require(is_object_or_none(request->checkpoint_map), "a map that is no object");
    require(hd_multitask_name(request->multitask) != NULL, "an unknown strategy");
    require(request->durability == HD_DURABLE_ASYNC || request->durability == HD_DURABLE_SYNC ||
                request->durability == HD_DURABLE_EXIT,
            "an unknown durability");
}

static void make_command(hd_json_val json)
{
    struct hd_val *given = NULL, *command;

    if (hd_val_from_json(json, &given, NULL))
        return;
    command = hd_run_command_make(given);
    require(command != NULL, "no command");
    hd_val_unref(command);
    hd_val_unref(given);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hd_run_request request;
    struct heddle_error fault = {0};
    struct hd_json body;
    int err;

    if (hd_json_parse(&body, hd_slice(data, size), NULL) != 0)
        return 0;
    err = hd_run_request_read(&request, hd_json_root(&body), &fault);
    require(err == 0 || (err == HD_EINVAL && fault.text[0]), "an odd error");
    if (err == 0) {
        check_taken(&request);
        if (request.command)
            make_command(request.command);
    }
    hd_json_fini(&body);
    return 0;
}
