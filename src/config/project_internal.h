/* Shared by the project_*.c files. */
#ifndef HD_CONFIG_PROJECT_INTERNAL_H
#define HD_CONFIG_PROJECT_INTERNAL_H

#include "config/dotenv.h"
#include "config/project.h"

/*
 * HD_EINVAL when the file of "./agent.py:graph" is not there, with what may be meant. `name` is
 * the setting's. Modules ("agents.chat:graph") are not looked for.
 */
HD_MUST_CHECK int hd_project_find_file(const char *folder, const char *name, struct hd_slice path,
                                       struct heddle_error *fault);

/*
 * argv and env of the program; HD_EINVAL: `fault` names the missing package and how to install it.
 */
HD_MUST_CHECK int hd_project_find_program(const struct hd_config *config,
                                          enum hd_rt_language language, const char *folder,
                                          struct hd_arena *arena, struct hd_rt_program *program,
                                          struct heddle_error *fault);

/* The variables of `env`: its file, or its members. In the arena. HD_ENOTFOUND: no such file. */
HD_MUST_CHECK int hd_project_read_env(const struct hd_config *config, struct hd_arena *arena,
                                      struct hd_dotenv *out, struct heddle_error *fault);

#endif
