/* bin/NAME of a bundle: starts lib/msdbg/NAME with the loader and the libraries next to it, so the host's C library does not matter.
   Statically linked. tools/bundle defines MSDBG_LOADER and MSDBG_PROGRAM, the names of the two files. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

enum { INTERNAL_ERROR = 7 }; /* kExitInternal of src/app/options.h */

static char *join(const char *a, const char *b) {
  char *out = malloc(strlen(a) + strlen(b) + 1);
  if (out == NULL) {
    fputs("msdbg: out of memory\n", stderr);
    exit(INTERNAL_ERROR);
  }
  return strcat(strcpy(out, a), b);
}

/* The path of the directory that holds `path`; the root directory is "". */
static char *parent(const char *path) {
  char *out = join(path, "");
  char *slash = strrchr(out, '/');
  if (slash != NULL) *slash = '\0';
  return out;
}

int main(int argc, char **argv) {
  static char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) {
    fprintf(stderr, "msdbg: /proc/self/exe cannot be read (%s); is /proc mounted?\n", strerror(errno));
    return INTERNAL_ERROR;
  }
  const char *root = parent(parent(self));
  const char *libraries = join(root, "/lib/msdbg");
  char *loader = join(libraries, "/" MSDBG_LOADER);
  char *program = join(libraries, "/" MSDBG_PROGRAM);
  char **words = calloc((size_t)argc + 7, sizeof *words);
  if (words == NULL) return INTERNAL_ERROR;
  int n = 0;
  words[n++] = loader;
  words[n++] = "--argv0";
  words[n++] = argc > 0 ? argv[0] : self;
  words[n++] = "--library-path";
  words[n++] = (char *)libraries;
  words[n++] = program;
  for (int i = 1; i < argc; ++i) words[n++] = argv[i];
  /* Read and removed by src/app/program.cpp. */
  setenv("MSDBG_LAUNCHER", self, 1);
  /* The terminal descriptions of the bundle come last: the host's own know its terminals better. Other programs on this host are not
     affected: their places are in the list. */
  if (getenv("TERMINFO_DIRS") == NULL) {
    setenv("TERMINFO_DIRS", join(join("/etc/terminfo:/lib/terminfo:/usr/share/terminfo:", root), "/share/msdbg/terminfo"), 1);
  }
  execve(loader, words, environ);
  fprintf(stderr, "msdbg: %s cannot be started: %s; unpack the whole archive, on a file system that is not mounted with noexec\n", loader,
          strerror(errno));
  return INTERNAL_ERROR;
}
