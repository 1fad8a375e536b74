#include "engine/kernels/elementwise_loops.h"

namespace redecode {

const ElementKernels kElementsPlain = {
    element_loops::exp_loop,        element_loops::swiglu_loop,  element_loops::sincos_loop,
    element_loops::scale_loop,      element_loops::add_loop,     element_loops::rotate_loop,
    element_loops::widen_bf16_loop, element_loops::hadamard_loop};

}  // namespace redecode
