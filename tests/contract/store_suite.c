/* The contract of the public API, case by case, on every database. */
#include "tests/contract/store_cases.h"

int main(void)
{
    static const struct store_case *const tables[] = {
        put_cases, writes_cases, list_cases, delta_cases, retain_cases, copy_cases, input_cases,
    };

    return run_cases("store", tables, COUNT_OF(tables), NULL);
}
