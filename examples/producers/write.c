/* Put standard input into a jostler spool as one file.
 *
 * usage: write SPOOL-DIR NAME.json < document
 *   SPOOL-DIR is <local-data-dir>/<experiment>/<datatype>; the file goes to the folder of today, UTC.
 *   The directories of the year, the month and the day are made if they are missing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) {
    perror(what);
    exit(1);
}

/* Open a directory below another one; make it, durably, if it is missing. */
static int directory(int above, const char *name) {
    if (mkdirat(above, name, 0755) == 0) {
        if (fsync(above) < 0) die(name);
    } else if (errno != EEXIST) {
        die(name);
    }
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) die(name);
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: write SPOOL-DIR NAME.json < document\n");
        return 2;
    }
    char year[8], month[4], day[4], part[32], buffer[65536];
    time_t now = time(NULL);
    struct tm *utc = gmtime(&now);
    strftime(year, sizeof year, "%Y", utc);
    strftime(month, sizeof month, "%m", utc);
    strftime(day, sizeof day, "%d", utc);
    snprintf(part, sizeof part, "%ld", (long)getpid());

    int top = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) die(argv[1]);
    /* Hidden, so the agent does not look into it, and on the same file system: a rename works. */
    int staging = directory(top, ".tmp-write-c");
    int folder = directory(directory(directory(top, year), month), day);

    int fd = openat(staging, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) die(part);
    ssize_t got;
    while ((got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0) {
        for (ssize_t done = 0, n; done < got; done += n) {
            n = write(fd, buffer + done, (size_t)(got - done));
            if (n < 0) die(part);
        }
    }
    if (got < 0) die("standard input");
    if (fsync(fd) < 0 || close(fd) < 0) die(part); /* the bytes first, */
    if (renameat2(staging, part, folder, argv[2], RENAME_NOREPLACE) < 0) {
        int error = errno;
        unlinkat(staging, part, 0);
        errno = error;
        die(argv[2]);
    }
    if (fsync(folder) < 0) die(argv[2]); /* then the name */
    return 0;
}
