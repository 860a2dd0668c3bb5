// The other object.
int from_table(int i);
int hidden_function(void);

const int offset_of_second = 100;
int counted = 1000;
static int local(int x) { return x + from_table(0); }
int (*pointer)(int) = local;
int twice(int x) { return 2 * x; }
int through_pointer(int x) { return pointer(x); }
int calls_hidden(void) { return hidden_function() + 1; }
