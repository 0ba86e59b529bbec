/* Tables of expected results in tests/data: lines of fields between tabs, comments with #. */
#ifndef HD_TESTS_UNIT_TABLE_LINES_H
#define HD_TESTS_UNIT_TABLE_LINES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"

#define TABLE_MAX_FIELDS 8

/* Calls `fn` with the fields of each line; returns the number of lines. */
static inline size_t table_lines(const char *name, size_t fields, void (*fn)(char **field))
{
    const char *directory = getenv("HD_TEST_DATA");
    char path[4096], line[4096];
    size_t count = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", directory ? directory : "tests/data", name);
    file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be opened", path);
    while (fgets(line, sizeof(line), file)) {
        char *field[TABLE_MAX_FIELDS] = {line}, *tab = line;

        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#')
            continue;
        for (size_t i = 1; i < fields; i++) {
            tab = strchr(tab, '\t');
            assert_non_null(tab);
            *tab++ = '\0';
            field[i] = tab;
        }
        fn(field);
        count++;
    }
    (void)fclose(file);
    return count;
}

#endif
