/* Shared by the config_*.c files. */
#ifndef HD_CONFIG_CONFIG_INTERNAL_H
#define HD_CONFIG_CONFIG_INTERNAL_H

#include "config/config.h"

/* A value on its way into the configuration. */
struct hd_config_place {
    struct hd_config *config;
    const struct hd_setting *setting;
    const char *origin;     /* "--port", "HEDDLE_PORT", "heddle.json: port" */
    struct hd_slice folder; /* paths are relative to it; may be empty */
    bool is_more;           /* adds to a list instead of replacing it */
    struct heddle_error *fault;
};

/* From a flag or the environment. HD_EINVAL names the origin. */
HD_MUST_CHECK int hd_config_set_text(const struct hd_config_place *place, struct hd_slice text);
/* From the file. */
HD_MUST_CHECK int hd_config_set_json(const struct hd_config_place *place, hd_json_val val);
/* Reads a file's text. `path` is for messages and for the folder of the paths in it. */
HD_MUST_CHECK int hd_config_read_json(struct hd_config *config, const char *path,
                                      struct hd_slice text, struct heddle_error *fault);

/* The target of a path such as "./agent.py:graph". */
enum hd_code_kind {
    HD_CODE_NONE,     /* a declaration */
    HD_CODE,          /* of *language */
    HD_CODE_NAMELESS, /* a file of code, but not what in it */
    HD_CODE_UNKNOWN
};
enum hd_code_kind hd_config_code(struct hd_slice path, enum hd_rt_language *language);
/* "./agent.py" of "./agent.py:graph". */
struct hd_slice hd_config_code_file(struct hd_slice path);
/* Python code that is named by its module: "agents.chat:graph". */
bool hd_config_is_module(struct hd_slice path);
/* HD_EINVAL for the last two, naming `id`. */
HD_MUST_CHECK int hd_config_check_code(const struct hd_config_place *place, struct hd_slice id,
                                       struct hd_slice path);

/* config_langgraph.c: other names of members. */
enum hd_alias_kind {
    HD_ALIAS_SETTING, /* `to` is the setting's name */
    HD_ALIAS_NOT,     /* the same, a boolean, the other way round */
    HD_ALIAS_QUIET,   /* nothing needs to be done */
    HD_ALIAS_WARN,    /* `to` has the reason */
    HD_ALIAS_REFUSE   /* `to` has the reason */
};

struct hd_config_alias {
    const char *name;
    enum hd_alias_kind kind;
    const char *to;
};

/* NULL after the last. */
const struct hd_config_alias *hd_config_alias_at(size_t index);
const struct hd_config_alias *hd_config_alias_find(struct hd_slice name);
/* In such a file unknown members cause a warning, not an error. */
bool hd_config_is_langgraph(const char *path, hd_json_val root);

/* A sentence for config->warnings; dropped without memory. */
void hd_config_warn(struct hd_config *config, const char *fmt, ...) HD_PRINTF(2, 3);

#endif
