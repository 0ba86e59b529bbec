/*
 * Lock on a database file, held by one server: a kernel lock (flock) on a companion file named
 * DATABASE-server. The kernel releases it when the process ends or is killed. Programs that
 * only read or write the database do not take it.
 */
#ifndef HD_SERVER_STORE_LOCK_FILE_H
#define HD_SERVER_STORE_LOCK_FILE_H

#include "base/compiler.h"
#include "base/error.h"
#include "cluster/server_identity.h"

struct hd_store_lock_file;

/* HD_EBUSY: held; `fault` names the server. */
HD_MUST_CHECK int hd_store_lock_file_take(const char *database,
                                          const struct hd_server_identity *self,
                                          struct hd_store_lock_file **out,
                                          struct heddle_error *fault);
/* Records the identity that refused servers report. */
void hd_store_lock_file_update(struct hd_store_lock_file *hold,
                               const struct hd_server_identity *self);
/* The identity of the server that holds the database; HD_ENOTFOUND: none does. */
HD_MUST_CHECK int hd_store_lock_file_holder(const char *database, struct hd_server_identity *out,
                                            struct heddle_error *fault);
/* Removes the companion file. Accepts NULL. */
void hd_store_lock_file_release(struct hd_store_lock_file *hold);

#endif
