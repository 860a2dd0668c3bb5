// One of two objects that refer to each other and to the C library.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int twice(int x);  // of the other object
extern const int offset_of_second;
extern int counted;

static const int table[] = {3, 1, 4, 1, 5, 9, 2, 6};
static int zeros[2000];
static int begins = 7;
const char* const words[] = {"one", "three"};

int calls_the_other(int x) { return twice(x) + offset_of_second; }
int from_table(int i) { return table[i & 7]; }
int counts(void) { return ++zeros[1999] + ++begins + ++counted; }
size_t length_of_word(int i) { return strlen(words[i]); }
void* address_of_free(void) { return (void*)free; }
void* (*const allocate)(size_t) = malloc;
int by_choice(int n) {
  switch (n) {
    case 0: return from_table(2);
    case 1: return twice(21);
    case 2: return -1;
    case 3: return counts();
    case 4: return 17;
    case 5: return abs(n - 20);
    default: return 0;
  }
}
__attribute__((visibility("hidden"))) int hidden_function(void) { return 5; }
