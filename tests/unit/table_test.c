#include "store/table.h"

#include "base/compiler.h"
#include "tests/unit/check.h"

static void cells_are_ordered(void **state)
{
    /* Ascending. */
    const struct hd_cell cells[] = {
        hd_cell_null(),
        hd_cell_int(INT64_MIN),
        hd_cell_int(-1),
        hd_cell_int(0),
        hd_cell_int(INT64_MAX),
        hd_cell_bytes(hd_slice(NULL, 0)),
        hd_cell_bytes(HD_S("\0")),
        hd_cell_bytes(HD_S("a")),
        hd_cell_bytes(HD_S("a\0")),
        hd_cell_bytes(HD_S("a\0b")),
        hd_cell_bytes(HD_S("ab")),
        hd_cell_bytes(HD_S("\x7f")),
        hd_cell_bytes(HD_S("\x80")),
        hd_cell_bytes(HD_S("\xff")),
    };

    (void)state;
    for (size_t i = 0; i < HD_COUNT(cells); i++) {
        for (size_t k = 0; k < HD_COUNT(cells); k++) {
            int order = hd_cell_cmp(&cells[i], &cells[k]);

            assert_int_equal(order < 0 ? -1 : order > 0, i < k ? -1 : i > k);
        }
    }
}

static void the_first_difference_decides(void **state)
{
    const struct hd_cell a[] = {hd_cell_int(1), hd_cell_int(5), hd_cell_int(1)};
    const struct hd_cell b[] = {hd_cell_int(1), hd_cell_int(4), hd_cell_int(9)};

    (void)state;
    assert_int_equal(hd_cells_cmp(a, b, 0), 0);
    assert_int_equal(hd_cells_cmp(a, b, 1), 0);
    assert_true(hd_cells_cmp(a, b, 3) > 0);
    assert_true(hd_cells_cmp(b, a, 2) < 0);
}

/* Properties that drivers rely on without a check. */
static void declarations_are_sound(void **state)
{
    (void)state;
    for (size_t t = 0; t < HD_TABLE_COUNT; t++) {
        const struct hd_table *table = &hd_tables[t];

        assert_true(table->key_count >= 1 && table->key_count < table->column_count);
        assert_true(table->column_count <= HD_MAX_COLUMNS);
        assert_true(table->index_count <= HD_COUNT(table->indexes));
        assert_true(table->since >= 1 && table->since <= HD_SCHEMA_VERSION);
        for (unsigned i = 0; i < table->column_count; i++)
            assert_non_null(table->columns[i].name);
        for (unsigned i = 0; i < table->key_count; i++)
            assert_true(!table->columns[i].nullable && table->columns[i].type != HD_COL_BLOB);
        for (unsigned i = 0; i < table->index_count; i++) {
            const struct hd_index *index = &table->indexes[i];

            unsigned seen = 0, key = (1u << table->key_count) - 1;

            assert_true(index->column_count <= HD_MAX_INDEX_COLUMNS);
            assert_true(index->since <= HD_SCHEMA_VERSION);
            if (index->is_partial)
                assert_int_equal(table->columns[index->greater].type,
                                 table->columns[index->lesser].type);
            for (unsigned k = 0; k < index->column_count; k++) {
                const struct hd_column *column = &table->columns[index->columns[k]];

                assert_true(index->columns[k] < table->column_count);
                assert_true(column->type != HD_COL_BLOB && (k == 0 || !column->nullable));
                seen |= 1u << index->columns[k];
            }
            /* Every index contains the whole key, without duplicates: its order has no ties. */
            assert_int_equal(seen & key, key);
            assert_int_equal(__builtin_popcount(seen), index->column_count);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_ordered),
        cmocka_unit_test(the_first_difference_decides),
        cmocka_unit_test(declarations_are_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
