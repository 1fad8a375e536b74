// engine/kernels/reference.h - slow, obviously right kernels in double, for the tests of the fast
// ones.
//
// Written from the definitions, not from the fast code; results are not rounded to f32. One row or
// one element a call, no lanes, no blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/kernels/elementwise.h"
#include "engine/kernels/matrix.h"

namespace redecode::reference {

double dot(std::span<const float> a, std::span<const float> b);
// Sum of |a[i] * b[i]|: the scale of a dot product's rounding error.
double dot_magnitude(std::span<const float> a, std::span<const float> b);
// w times one row of x; w.rows values.
std::vector<double> gemv(const Matrix& w, std::span<const float> x);
// weight may be empty (ones).
std::vector<double> rms_norm(std::span<const float> x, std::span<const float> weight, double eps);
// One head's `head_dim` elements at a position.
std::vector<double> rope(std::span<const float> head, const RopeShape& shape, int32_t position);
double swiglu(double gate, double up);
std::vector<double> hadamard(std::span<const float> x);

}  // namespace redecode::reference
