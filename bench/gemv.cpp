// bench/gemv.cpp - how close gemm comes to one core's memory bandwidth and arithmetic.
//
// Prints the read bandwidth of one core, measured in the same run; GB/s of weights and its share of
// that for each storage type at batch 1 to 8 over a matrix set larger than the caches; and GFLOP/s
// at batch 64 on the shapes of small models. Best of several repetitions.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "engine/kernels/dot.h"
#include "engine/kernels/matrix.h"
#include "traces/random.h"

namespace redecode {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::fp8, DType::nvfp4};

const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::fp8:
      return "fp8";
    case DType::nvfp4:
      return "nvfp4";
  }
  return "";
}

// Seconds of the fastest of `repetitions` calls.
template <class Body>
double best_seconds(int repetitions, const Body& body) {
  double best = 1e30;
  for (int i = 0; i < repetitions; ++i) best = std::min(best, seconds_of(body));
  return best;
}

std::vector<float> random_floats(size_t count, uint64_t seed) {
  RandomSequence random(seed);
  std::vector<float> out(count);
  for (float& v : out) v = random.unit() * 2.0f - 1.0f;
  return out;
}

StreamedMemory random_matrix(DType dtype, uint32_t rows, uint32_t cols) {
  StreamedMemory memory(matrix_bytes(dtype, rows, cols));
  encode_matrix(dtype, rows, cols, random_floats(size_t{rows} * cols, 1), memory.data());
  return memory;
}

Matrix view_of(DType dtype, uint32_t rows, uint32_t cols, const StreamedMemory& memory) {
  return {dtype, rows, cols, memory.data()};
}

double best_gb_s(BandwidthReader& reader, int repetitions) {
  double best = 0.0;
  for (int i = 0; i < repetitions; ++i) best = std::max(best, reader.gb_s());
  return best;
}

void print_streaming(Exec& exec, int repetitions) {
  BandwidthReader memory(uint64_t{256} << 20);
  const uint32_t rows = 24576, cols = 4096;  // 100 million weights
  std::printf("\nweights %u x %u, one thread      share of read bandwidth in brackets\n", rows,
              cols);
  std::printf("type     size MB   read, GB/s");
  for (const int batch : {1, 2, 4, 8}) std::printf("   batch %d, GB/s", batch);
  std::printf("\n");
  const std::vector<float> x = random_floats(size_t{8} * cols, 2);
  std::vector<float> y(size_t{8} * rows);
  for (const DType dtype : kTypes) {
    const StreamedMemory data = random_matrix(dtype, rows, cols);
    const Matrix w = view_of(dtype, rows, cols, data);
    const double size = static_cast<double>(matrix_bytes(dtype, rows, cols));
    double rates[4] = {};
    const double before_gb_s = best_gb_s(memory, 9);
    for (int i = 0; i < 4; ++i) {
      const double seconds = best_seconds(
          repetitions, [&] { gemm(exec, w, x.data(), cols, y.data(), rows, 1u << i); });
      rates[i] = size / seconds * 1e-9;
    }
    const double bandwidth_gb_s = std::max(before_gb_s, best_gb_s(memory, 9));
    std::printf("%-6s %9.1f   %10.2f", type_name(dtype), size * 1e-6, bandwidth_gb_s);
    for (const double rate : rates) {
      std::printf("   %6.2f (%3.0f %%)", rate, 100.0 * rate / bandwidth_gb_s);
    }
    std::printf("\n");
  }
}

void print_small(Exec& exec, int repetitions) {
  struct Shape {
    uint32_t rows, cols;
  };
  std::printf("\nsmall matrices, one thread\n");
  std::printf(
      "type    rows   cols   batch 1, us   batch 8, us   batch 64, us   batch 64, GFLOP/s\n");
  for (const Shape shape : {Shape{64, 64}, {128, 512}, {512, 128}, {1024, 256}, {2048, 2048}}) {
    const std::vector<float> x = random_floats(size_t{64} * shape.cols, 3);
    std::vector<float> y(size_t{64} * shape.rows);
    for (const DType dtype : kTypes) {
      const StreamedMemory data = random_matrix(dtype, shape.rows, shape.cols);
      const Matrix w = view_of(dtype, shape.rows, shape.cols, data);
      double us[3] = {};
      const uint32_t batches[3] = {1, 8, 64};
      for (int i = 0; i < 3; ++i) {
        const double flops = 2.0 * shape.rows * shape.cols * batches[i];
        const int inner = static_cast<int>(std::max(1.0, 2e7 / flops));
        const double seconds = best_seconds(repetitions, [&] {
          for (int k = 0; k < inner; ++k) {
            gemm(exec, w, x.data(), shape.cols, y.data(), shape.rows, batches[i]);
          }
        });
        us[i] = seconds / inner * 1e6;
      }
      const double gflops = 2.0 * shape.rows * shape.cols * 64 / us[2] * 1e-3;
      std::printf("%-6s %5u %6u   %11.2f   %11.2f   %12.2f   %18.1f\n", type_name(dtype),
                  shape.rows, shape.cols, us[0], us[1], us[2], gflops);
    }
  }
}

Isa isa_of(int argc, char** argv) {
  std::string_view wanted = isa_name(best_isa());
  for (int i = 1; i < argc; ++i)
    if (argv[i] != std::string_view("--quick")) wanted = argv[i];
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
    if (wanted == isa_name(isa) && isa_supported(isa)) return isa;
  }
  std::fprintf(stderr, "usage: bench_gemv [--quick] [plain|avx2|avx512]\n");
  std::exit(2);
}

}  // namespace
}  // namespace redecode

int main(int argc, char** argv) {
  redecode::Exec exec(1, redecode::isa_of(argc, argv));
  const int repetitions = redecode::has_flag(argc, argv, "--quick") ? 3 : 9;
  std::printf("path %s\n", redecode::isa_name(exec.isa()));
  redecode::print_streaming(exec, repetitions);
  redecode::print_small(exec, repetitions);
  return 0;
}
