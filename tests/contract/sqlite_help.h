/* Shared by the tests of databases in files: a directory for each. */
#ifndef HD_TESTS_CONTRACT_SQLITE_HELP_H
#define HD_TESTS_CONTRACT_SQLITE_HELP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/contract/rows.h"

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

static char dir[64];
static char path[96]; /* a file in it */
static char url[160];

static inline int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/heddle-sqlite-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/store.db", dir);
    snprintf(url, sizeof(url), "sqlite:%s?timeout=60", path);
    return 0;
}

/* Calls `fn` with the path of everything in the directory. */
static inline size_t each_entry(void (*fn)(const char *entry, void *arg), void *arg)
{
    DIR *handle = opendir(dir);
    struct dirent *entry;
    size_t count = 0;

    assert_non_null(handle);
    while ((entry = readdir(handle)) != NULL) {
        char full[400];

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(full, sizeof(full), "%s/%s", dir, entry->d_name);
        fn(full, arg);
        count++;
    }
    closedir(handle);
    return count;
}

static inline void remove_entry(const char *entry, void *arg)
{
    (void)arg;
    if (unlink(entry) != 0)
        rmdir(entry);
}

static inline int remove_dir(void **state)
{
    (void)state;
    chmod(dir, 0755);
    each_entry(remove_entry, NULL);
    return rmdir(dir);
}

static inline void write_file(const char *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

#endif
