/* Each name that is asked about is appended to $TEST_HOSTS.asked.

   getaddrinfo(3) whose answers a test writes into the file $TEST_HOSTS: lines "NAME ADDRESS…", "NAME fail"
   or "NAME hang". Names that are not there go to the real one. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*resolve)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int answer(resolve real, char *words, const struct addrinfo *hints, struct addrinfo **result) {
    struct addrinfo *last = NULL;
    char *rest = NULL;
    *result = NULL;
    for (char *word = strtok_r(words, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        if (strcmp(word, "fail") == 0) return EAI_AGAIN;
        if (strcmp(word, "hang") == 0) for (;;) pause();
        struct addrinfo *found = NULL;
        int status = real(word, NULL, hints, &found);
        if (status != 0) return status;
        if (last) last->ai_next = found; else *result = found;
        for (last = found; last->ai_next; last = last->ai_next) {}
    }
    return *result ? 0 : EAI_NODATA;
}

static void note(const char *path, const char *name) {
    char asked[512];
    snprintf(asked, sizeof asked, "%s.asked", path);
    FILE *file = fopen(asked, "ae");
    if (!file) return;
    fprintf(file, "%s\n", name);
    fclose(file);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    resolve real = (resolve)dlsym(RTLD_NEXT, "getaddrinfo");
    const char *path = getenv("TEST_HOSTS");
    if (name && path) note(path, name);
    FILE *file = name && path ? fopen(path, "re") : NULL;
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            fclose(file);
            return answer(real, line + length + 1, hints, result);
        }
    }
    if (file) fclose(file);
    return real(name, service, hints, result);
}
