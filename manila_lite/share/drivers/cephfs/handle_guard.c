/*
 * Keep NFS clients in the share that is exported to them.
 *
 * The handle of a file has its inode and its snapshot. The metadata server refuses
 * the inodes of other shares, but if a snapshot is named, it tells any user what it
 * knows of the inode: size, owner, mode and times. A client can make up a handle with
 * any numbers.
 *
 * This library takes the place of NFS-Ganesha's plugin libfsalceph.so, and loads it,
 * as the guard of the driver btrfs does. The plugin looks up handles through it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>

#include "handle_guard.h"

#define NO_SNAPSHOT ((uint64_t)-2)
#define SNAPSHOTS ((uint64_t)-1) /* the directory ".snap" */

struct vinodeno {
    uint64_t inode;
    uint64_t snapshot;
};
struct ceph_mount_info;
struct Inode;

struct Inode *ceph_ll_get_inode(struct ceph_mount_info *, struct vinodeno);
int ceph_ll_put(struct ceph_mount_info *, struct Inode *);

typedef int lookup(struct ceph_mount_info *, struct vinodeno, struct Inode **);
static lookup *look_up;

/*
 * A file in a snapshot is one of the share if it was found by its name, or if
 * the share has its inode now. A client that has the handle of one that was deleted
 * since looks its name up again.
 */
static int look_up_own(
    struct ceph_mount_info *mount, struct vinodeno wanted, struct Inode **found)
{
    struct vinodeno now = {wanted.inode, NO_SNAPSHOT};
    struct Inode *head;
    int error;

    if (wanted.snapshot == NO_SNAPSHOT || wanted.snapshot == SNAPSHOTS)
        return look_up(mount, wanted, found);
    *found = ceph_ll_get_inode(mount, wanted);
    if (*found)
        return 0;
    error = look_up(mount, now, &head);
    if (error)
        return -ESTALE;
    ceph_ll_put(mount, head);
    return look_up(mount, wanted, found);
}

int ceph_ll_lookup_vino(
    struct ceph_mount_info *, struct vinodeno, struct Inode **)
    __attribute__((alias("look_up_own")));

/* Do not serve with a plugin that would not be guarded. */
__attribute__((constructor)) static void require_calls(void)
{
    struct link_map *plugin = dlopen(FSAL, RTLD_NOLOAD | RTLD_NOW);
    void *ceph = dlopen("libcephfs.so.2", RTLD_NOLOAD | RTLD_NOW);

    if (ceph)
        look_up = (lookup *)dlsym(ceph, "ceph_ll_lookup_vino");
    if (plugin && look_up && look_up != look_up_own
            && is_called(plugin, "ceph_ll_lookup_vino", look_up_own)) {
        record();
        return;
    }
    fprintf(stderr, "%s looks up handles without their guard\n", FSAL);
    abort();
}
