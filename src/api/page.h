/*
 * The chat page: files of web/ that scripts/embed compresses into the program; a program built
 * without it has those of src/api/fallback. The files are public. Loop.
 */
#ifndef HD_API_PAGE_H
#define HD_API_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/slice.h"

struct hd_site;

struct hd_page_file {
    const char *path; /* "/index.html" */
    const char *type;
    const char *packed; /* gzip */
    size_t packed_len;
    size_t len; /* unpacked */
    const char *etag;
    bool is_immutable; /* the path changes with the content */
};

extern const struct hd_page_file hd_page_files[];
extern const size_t hd_page_files_count;

HD_MUST_CHECK int hd_site_create(struct hd_site **out);
void hd_site_destroy(struct hd_site *site);

/* True when a path (without http.mount_prefix) belongs to the page. */
bool hd_page_is(struct hd_slice path);

/* True when a list of tags, If-None-Match, contains this one (RFC 9110, 13.1.2). Pure. */
bool hd_etag_matches(struct hd_slice list, struct hd_slice etag);

#endif
