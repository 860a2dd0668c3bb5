// Keeps libraries to one OpenMP thread: those that they start by themselves would compete with the pool's.
#ifndef WEFT_BACKENDS_CPU_OPS_OPENMP_H_
#define WEFT_BACKENDS_CPU_OPS_OPENMP_H_

// Debian's oneDNN parallelises with OpenMP. Weak: absent in other builds.
extern "C" {
void omp_set_num_threads(int) __attribute__((weak));
int omp_get_max_threads() __attribute__((weak));
}

namespace weft::cpu {

// One OpenMP thread for the calling thread, for as long as this lives. The setting belongs to the thread, so the user's
// own OpenMP regions must find it as they left it.
class SingleOpenMpThread {
 public:
  SingleOpenMpThread() {
    if (omp_set_num_threads == nullptr) return;
    saved_ = omp_get_max_threads();
    if (saved_ != 1) omp_set_num_threads(1);
  }
  ~SingleOpenMpThread() {
    if (saved_ > 1) omp_set_num_threads(saved_);
  }
  SingleOpenMpThread(const SingleOpenMpThread&) = delete;

 private:
  int saved_ = 1;
};

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_OPS_OPENMP_H_
