/*
 * What the guards of file handles have in common, see `handle_guard.py`.
 *
 * FSAL is the path of the plugin, DIGEST that of the guard, and RECORD_VARIABLE the
 * environment variable with the path of a file that says which process has loaded
 * the guard.
 */
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What `handle_guard.py` looks for. */
const char manila_lite_handle_guard[] = "manila_lite handle guard " DIGEST;

static void *address(const struct link_map *plugin, ElfW(Addr) found)
{
    return (void *)(found < plugin->l_addr ? plugin->l_addr + found : found);
}

/* Return whether the plugin calls a function of this library. */
static bool is_called(
    const struct link_map *plugin, const char *name, void *function)
{
    const ElfW(Dyn) *each;
    const ElfW(Sym) *symbols = NULL;
    const ElfW(Rela) *calls = NULL;
    const char *names = NULL;
    size_t size = 0, i;
    bool is_found = false;

    for (each = plugin->l_ld; each->d_tag != DT_NULL; each++) {
        if (each->d_tag == DT_SYMTAB)
            symbols = address(plugin, each->d_un.d_ptr);
        else if (each->d_tag == DT_STRTAB)
            names = address(plugin, each->d_un.d_ptr);
        else if (each->d_tag == DT_JMPREL)
            calls = address(plugin, each->d_un.d_ptr);
        else if (each->d_tag == DT_PLTRELSZ)
            size = each->d_un.d_val;
        else if (each->d_tag == DT_PLTREL && each->d_un.d_val != DT_RELA)
            return false;
    }
    if (!symbols || !names || !calls)
        return false;
    for (i = 0; i < size / sizeof(*calls); i++) {
        const ElfW(Sym) *symbol = &symbols[
            sizeof(void *) == 8 ? ELF64_R_SYM(calls[i].r_info)
                                : ELF32_R_SYM(calls[i].r_info)];

        if (strcmp(names + symbol->st_name, name))
            continue;
        if (*(void **)(plugin->l_addr + calls[i].r_offset) != function)
            return false;
        is_found = true;
    }
    return is_found;
}

static void record(void)
{
    const char *path = getenv(RECORD_VARIABLE);
    FILE *file = path ? fopen(path, "we") : NULL;

    if (file) {
        fprintf(file, "%s %ld\n", DIGEST, (long)getpid());
        fclose(file);
    }
}
