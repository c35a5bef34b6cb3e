/* What the test programs print with: every line is a fact that two libraries must agree on. */
#ifndef ESKER_TEST_SHOW_H
#define ESKER_TEST_SHOW_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void show_bytes(const char *data, size_t len) {
  putchar('\'');
  for (size_t i = 0; i < len; i++) {
    unsigned char byte = (unsigned char)data[i];
    if (byte >= 32 && byte < 127) putchar(byte);
    else printf("\\x%02x", byte);
  }
  putchar('\'');
}

/* A value as `get` returns it; frees it by `release`. */
static inline void show_value(const char *what, char *value, size_t len, void (*release)(void *)) {
  printf("%s: ", what);
  if (value == NULL) {
    printf("none, length %zu\n", len);
    return;
  }
  show_bytes(value, len);
  putchar('\n');
  release(value);
}

/* An error up to its first colon, which is what programs compare; frees it and clears the slot. */
static inline void show_error(const char *what, char **error, void (*release)(void *)) {
  if (*error == NULL) {
    printf("%s: ok\n", what);
    return;
  }
  char *colon = strchr(*error, ':');
  printf("%s: error %.*s\n", what, (int)(colon ? colon - *error : (long)strlen(*error)), *error);
  release(*error);
  *error = NULL;
}

#endif
