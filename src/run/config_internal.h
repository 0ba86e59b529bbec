/* What the config_*.c files share. */
#ifndef HD_RUN_CONFIG_INTERNAL_H
#define HD_RUN_CONFIG_INTERNAL_H

#include "run/config.h"

/* A value on its way into the configuration. */
struct hd_config_place {
    struct hd_config *config;
    const struct hd_setting *setting;
    const char *origin;     /* "--port", "HEDDLE_PORT", "heddle.json: port" */
    struct hd_slice folder; /* paths are relative to it; may be empty */
    bool is_more;           /* adds to a list instead of replacing it */
    struct hd_fault *fault;
};

/* From a flag or the environment. HD_EINVAL names the origin. */
HD_MUST_CHECK int hd_config_set_text(const struct hd_config_place *place, struct hd_slice text);
/* From the file. */
HD_MUST_CHECK int hd_config_set_json(const struct hd_config_place *place, hd_json_val val);
/* Reads a file's text. `path` is for messages and for the folder of the paths in it. */
HD_MUST_CHECK int hd_config_read_json(struct hd_config *config, const char *path,
                                      struct hd_slice text, struct hd_fault *fault);

#endif
