/* Reading a PDF fails with EIO while the file that $BAD_READS names exists: from the share of the
   PDF on which is written in it (0 to 1), as on a disk with bad sectors or a mount that went away.
   Python itself does not read by these functions, the renderer does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static __thread FILE *failed;

static int fails(FILE *file)
{
    char link[64], path[4096];
    double share = 0;
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(file));
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 4 || memcmp(path + length - 4, ".pdf", 4))
        return 0;
    FILE *order = fopen(getenv("BAD_READS"), "r");
    if (!order)
        return 0;
    int given = fscanf(order, "%lf", &share);
    fclose(order);
    return given == 1 && !fstat(fileno(file), &status) && ftell(file) >= share * status.st_size;
}

size_t fread(void *to, size_t size, size_t count, FILE *file)
{
    static size_t (*real)(void *, size_t, size_t, FILE *);
    if (!real)
        real = dlsym(RTLD_NEXT, "fread");
    failed = NULL;
    if (!fails(file))
        return real(to, size, count, file);
    failed = file;
    errno = EIO;
    return 0;
}

int ferror(FILE *file)
{
    static int (*real)(FILE *);
    if (!real)
        real = dlsym(RTLD_NEXT, "ferror");
    if (file != failed)
        return real(file);
    errno = EIO;
    return 1;
}
