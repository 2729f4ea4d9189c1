/*
 * Keep NFS clients in the volume that is exported to them.
 *
 * NFS-Ganesha opens the file that a handle of a client names with
 * open_by_handle_at(2), on the mount of the export. The kernel resolves the
 * handle in the whole file system: the handle of a file in a btrfs has the id
 * of its subvolume, and a client can make up any id.
 *
 * This library takes the place of NFS-Ganesha's plugin libfsalvfs.so, and
 * loads it. NFS-Ganesha loads plugins with RTLD_DEEPBIND: they find symbols
 * in the library that was asked for first, then in those that it needs. Thus
 * the plugin calls the functions below; it does not call those of a library
 * in LD_PRELOAD.
 *
 * The plugin also reads directories through it, see read_own_entries.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "handle_guard.h"

/* The root directory of every subvolume has this number. */
#define ROOT_INODE 256

/* The bit that marks a handle of the plugin that names no file. */
#define DUMMY 0x20

struct gsh_buffdesc {
    unsigned char *addr;
    size_t len;
};

typedef bool validator(struct gsh_buffdesc *);
static validator *is_valid;
typedef int reader(int, char *, unsigned int, off_t *);
static reader *read_entries;

static int open_handle(int mount, struct file_handle *handle, int flags)
{
    struct stat top, found;
    int file = syscall(SYS_open_by_handle_at, mount, handle, flags);

    if (file < 0)
        return file;
    /* Each subvolume has a device number of its own while it is in use. */
    if (!fstat(mount, &top) && top.st_ino == ROOT_INODE
            && !fstat(file, &found) && found.st_dev == top.st_dev)
        return file;
    close(file);
    errno = ESTALE;
    return -1;
}

static int open_guarded(int mount, struct file_handle *handle, int flags)
{
    int file;

    if (flags & O_TRUNC) {
        /* It must not be truncated before it is known which file it is. */
        file = open_handle(mount, handle, O_PATH);
        if (file < 0)
            return file;
        close(file);
    }
    return open_handle(mount, handle, flags);
}

/*
 * The plugin makes up handles without a file for directories that it does not
 * export. Of a client, it takes them for any mount of the machine, and those
 * with the type of a file end the server.
 */
static bool is_valid_file(struct gsh_buffdesc *handle)
{
    return handle->addr && handle->len && !(handle->addr[0] & DUMMY)
        && is_valid(handle);
}

/*
 * Return whether an entry is the root of another subvolume, or the empty
 * directory that a snapshot has in its place: no handle names that.
 */
static bool is_nested(
    int folder, const struct stat *top, const struct dirent64 *entry)
{
    struct stat found;

    return (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
        && strcmp(entry->d_name, "..")
        && !fstatat(folder, entry->d_name, &found, AT_SYMLINK_NOFOLLOW)
        && found.st_dev != top->st_dev;
}

/*
 * The plugin does not list a directory that has an entry in another file
 * system, as it takes each subvolume for one. Such entries are left out.
 */
static int read_own_entries(
    int folder, char *entries, unsigned int size, off_t *place)
{
    struct stat top;
    int length, next, kept;

    do {
        length = read_entries(folder, entries, size, place);
        if (length <= 0 || fstat(folder, &top))
            return length;
        for (next = kept = 0; next < length;) {
            struct dirent64 *entry = (void *)(entries + next);
            unsigned short step = entry->d_reclen;

            if (!is_nested(folder, &top, entry)) {
                memmove(entries + kept, entry, step);
                kept += step;
            }
            next += step;
        }
    } while (!kept); /* 0 would be the end of the directory */
    return kept;
}

int open_by_handle_at(int, struct file_handle *, int)
    __attribute__((alias("open_guarded")));
bool vfs_valid_handle(struct gsh_buffdesc *)
    __attribute__((alias("is_valid_file")));
int vfs_readents(int, char *, unsigned int, off_t *)
    __attribute__((alias("read_own_entries")));

/* Do not serve with a plugin that would not be guarded. */
__attribute__((constructor)) static void require_calls(void)
{
    struct link_map *plugin = dlopen(FSAL, RTLD_NOLOAD | RTLD_NOW);

    if (plugin) {
        is_valid = (validator *)dlsym(plugin, "vfs_valid_handle");
        read_entries = (reader *)dlsym(plugin, "vfs_readents");
    }
    if (plugin && is_valid && is_valid != is_valid_file
            && read_entries && read_entries != read_own_entries
            && is_called(plugin, "vfs_valid_handle", is_valid_file)
            && is_called(plugin, "vfs_readents", read_own_entries)
            && is_called(plugin, "open_by_handle_at", open_guarded)) {
        record();
        return;
    }
    fprintf(stderr, "%s opens handles without their guard\n", FSAL);
    abort();
}
