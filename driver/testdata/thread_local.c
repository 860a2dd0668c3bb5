// What the code generator does not make, and the linker refuses.
__thread int mine = 3;
int get(void) { return mine; }
