#include "engine/kernels/reference.h"

#include <bit>
#include <cmath>

namespace redecode::reference {

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

double dot_magnitude(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::fabs(double{a[i]} * double{b[i]});
  return sum;
}

std::vector<double> gemv(const Matrix& w, std::span<const float> x) {
  std::vector<double> y(w.rows, 0.0);
  for (uint32_t r = 0; r < w.rows; ++r) {
    for (uint32_t c = 0; c < w.cols; ++c) y[r] += double{matrix_value(w, r, c)} * double{x[c]};
  }
  return y;
}

std::vector<double> rms_norm(std::span<const float> x, std::span<const float> weight, double eps) {
  const double mean_square = dot(x, x) / static_cast<double>(x.size());
  std::vector<double> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    out[i] =
        double{x[i]} / std::sqrt(mean_square + eps) * (weight.empty() ? 1.0 : double{weight[i]});
  }
  return out;
}

std::vector<double> rope(std::span<const float> head, const RopeShape& shape, int32_t position) {
  std::vector<double> out(head.begin(), head.end());
  for (uint32_t i = 0; i < shape.rope_dim / 2; ++i) {
    const double frequency = std::pow(double{shape.theta}, -2.0 * i / shape.rope_dim);
    const double angle = (shape.inverse ? -1.0 : 1.0) * position * frequency;
    const double a = double{head[shape.offset + 2 * i]};
    const double b = double{head[shape.offset + 2 * i + 1]};
    out[shape.offset + 2 * i] = a * std::cos(angle) - b * std::sin(angle);
    out[shape.offset + 2 * i + 1] = a * std::sin(angle) + b * std::cos(angle);
  }
  return out;
}

double swiglu(double gate, double up) { return gate / (1.0 + std::exp(-gate)) * up; }

std::vector<double> hadamard(std::span<const float> x) {
  const size_t dim = x.size();
  std::vector<double> out(dim, 0.0);
  for (size_t i = 0; i < dim; ++i) {
    for (size_t j = 0; j < dim; ++j) {
      out[i] += std::popcount(i & j) % 2 == 0 ? double{x[j]} : -double{x[j]};
    }
    out[i] /= std::sqrt(static_cast<double>(dim));
  }
  return out;
}

}  // namespace redecode::reference
