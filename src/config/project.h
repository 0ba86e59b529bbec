/*
 * The project that a langgraph.json describes: which of its code is in which language, and how
 * the workers that run it are started. docs/projects.md.
 *
 * The file itself is read as any configuration (config.h).
 */
#ifndef HD_CONFIG_PROJECT_H
#define HD_CONFIG_PROJECT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/config.h"
#include "runtime/runtime.h"

/* Code of the project besides its graphs. */
enum hd_project_part {
    HD_PROJECT_AUTH, /* auth.path */
    HD_PROJECT_APP,  /* http.app */
    HD_PROJECT_EMBED /* store.index.embed, unless that names a provider's model */
};

struct hd_project_code {
    struct hd_slice path; /* as it is written: "./auth.py:auth" */
    enum hd_rt_language language;
};

/* False: there is no such code. */
bool hd_project_part(const struct hd_config *config, enum hd_project_part part,
                     struct hd_project_code *out);
/* Something is in that language, so it needs workers. */
bool hd_project_uses(const struct hd_config *config, enum hd_rt_language language);
bool hd_project_needs_workers(const struct hd_config *config);

/* "python", "js". */
const char *hd_project_language_name(enum hd_rt_language language);
/*
 * By the path's ending: .py, or .ts, .js and their kin; without one it is a Python module. False: a
 * declaration (.json), or unknown.
 */
bool hd_project_language(struct hd_slice path, enum hd_rt_language *out);

/*
 * How workers are started: finds the virtual environment, node, and the package in each. All is
 * in the arena, which must live as long as the settings. HD_EINVAL with a sentence for the user.
 */
HD_MUST_CHECK int hd_project_settings(const struct hd_config *config, struct hd_arena *arena,
                                      struct hd_rt_settings *out, struct heddle_error *fault);

/*
 * HD_EINVAL when the environment holds what LangGraph's own servers would read and Heddle does
 * not, or a LANGGRAPH_CONFIG that cannot be used. After hd_project_set_environment().
 */
HD_MUST_CHECK int hd_project_check_environment(const struct hd_config *config,
                                               struct heddle_error *fault);
/* JSON of the first assistant of a graph: LANGGRAPH_CONFIG's, else {}. In the arena. */
HD_MUST_CHECK int hd_project_defaults(struct hd_slice graph_id, struct hd_arena *arena,
                                      struct hd_slice *config, struct hd_slice *context,
                                      struct heddle_error *fault);

/* Puts what `env` names into this process' environment. Before there are threads. */
HD_MUST_CHECK int hd_project_set_environment(const struct hd_config *config,
                                             struct heddle_error *fault);

#endif
