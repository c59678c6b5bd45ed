//! Forward and backward of each operation, at the sizes of a small DistilBERT's training step.

use std::hint::black_box;

use candle_accelerate::ops::{self, Attention, CrossEntropy};
use candle_accelerate::{Result, rng};
use candle_core::{DType, Device, Tensor, Var};
use criterion::{Criterion, criterion_group, criterion_main};

const ROWS: usize = 16 * 64;
const WIDTH: usize = 256;

fn variable(shape: impl Into<candle_core::Shape>) -> Var {
    let values = rng::with_seed(1, || rng::normal(shape, 0.0, 1.0, DType::F32, &Device::Cpu));
    values.and_then(|values| Ok(Var::from_tensor(&values)?)).unwrap_or_else(|e| panic!("{e}"))
}

fn bench(criterion: &mut Criterion, name: &str, op: impl Fn() -> Result<Tensor>) {
    let run = || op().unwrap_or_else(|error| panic!("{name}: {error}"));
    criterion.bench_function(&format!("{name}/forward"), |bench| bench.iter(|| black_box(run())));
    criterion.bench_function(&format!("{name}/forward and backward"), |bench| {
        bench.iter(|| black_box(run().sum_all().and_then(|sum| sum.backward())))
    });
}

fn operations(criterion: &mut Criterion) {
    let x = variable((ROWS, WIDTH));
    let wide = variable((ROWS, 4 * WIDTH));
    let (weight, bias) = (variable(WIDTH), variable(WIDTH));
    bench(criterion, "layer_norm", || ops::layer_norm(&x, &weight, &bias, 1e-12));
    bench(criterion, "rms_norm", || ops::rms_norm(&x, &weight, 1e-6));
    bench(criterion, "softmax", || ops::softmax(&x));
    bench(criterion, "gelu", || ops::gelu(&wide));
    bench(criterion, "gelu_tanh", || ops::gelu_tanh(&wide));
    bench(criterion, "dropout", || ops::dropout(&x, 0.1));

    let (w, b) = (variable((4 * WIDTH, WIDTH)), variable(4 * WIDTH));
    bench(criterion, "linear", || ops::linear(&x, &w, Some(&b)));

    let [q, k, v] = [(); 3].map(|()| variable((16, 64, WIDTH)));
    for (name, dropout) in [("attention", 0.0), ("attention with dropout", 0.1)] {
        let options = Attention { num_heads: 4, mask: None, dropout };
        bench(criterion, name, || ops::scaled_dot_product_attention(&q, &k, &v, &options));
    }

    let table = variable((5000, WIDTH));
    let ids: Vec<u32> = (0..ROWS as u32).map(|i| i * 7919 % 5000).collect();
    let ids = Tensor::new(ids, &Device::Cpu).unwrap_or_else(|error| panic!("{error}"));
    bench(criterion, "embedding", || ops::embedding(&ids, &table, Some(0)));

    let logits = variable((ROWS, 1000));
    let targets: Vec<u32> = (0..ROWS as u32).map(|i| i % 1000).collect();
    let targets = Tensor::new(targets, &Device::Cpu).unwrap_or_else(|error| panic!("{error}"));
    bench(criterion, "cross_entropy", || {
        ops::cross_entropy(&logits, &targets, &CrossEntropy::default())
    });
}

criterion_group!(benches, operations);
criterion_main!(benches);
