/*
 * A layer below SQLite that fails on purpose. It sits on the system's own VFS, so locks and files
 * are real ones.
 *
 * Faults: the n-th call of chosen kinds fails, once or from then on.
 *
 * Power: written data reaches the file only when it is synced. When the power fails, a random part
 * of the unsynced data is written, sector by sector and some sectors only in part, and likewise
 * truncations; of the files created and deleted since the directory was last synced the latest are
 * undone; and the process ends.
 */
#ifndef HD_TESTS_FAULT_VFS_H
#define HD_TESTS_FAULT_VFS_H

#include <stdbool.h>
#include <stdint.h>

enum vfs_kind {
    VFS_OPEN,
    VFS_READ,
    VFS_WRITE,
    VFS_SYNC,
    VFS_TRUNCATE,
    VFS_LOCK,
    VFS_SHM, /* mapping or locking the shared index of the log */
    VFS_DELETE,
    VFS_SIZE, /* reading a file's size */
    VFS_KINDS
};

/* Registers the layer as SQLite's default. Once per process. */
void vfs_install(void);

/*
 * Calls of `kind` from now on: number n fails, all later ones too when `sticky`. n == 0: no call.
 * `is_full`: writing fails because the disk is full, and half of it is written.
 */
void vfs_fail(enum vfs_kind kind, long n, bool sticky, bool is_full);
/* How many calls failed since vfs_fail(). */
long vfs_failures(void);

/* From now on unsynced data may be lost; call number n of any kind loses it. 0: no call. */
void vfs_power(uint64_t seed, long n);
/* Calls so far. */
long vfs_calls(void);
/* Loses the power now. Does not return. */
void vfs_power_off(void);

enum { VFS_POWER_STATUS = 99 }; /* the exit status of a process that lost its power */

#endif
