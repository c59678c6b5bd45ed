"""Values made in different cells are different values: one copy of candle's tensor counter."""

import pytest
from client import FIRST_CELL

THROUGH_THE_LIBRARY = "use candle_accelerate::candle_core::{Device, Tensor, Var};"
PLAIN_CANDLE = "use candle_core::{Device, Tensor, Var};"


@pytest.mark.parametrize("imports", [THROUGH_THE_LIBRARY, PLAIN_CANDLE])
def test_variables_of_two_cells_get_their_own_gradients(kernel, imports):
    kernel.ok(FIRST_CELL)
    kernel.ok(imports)
    kernel.ok("let w = Var::from_tensor(&Tensor::new(&[2f32, 3.0], &Device::Cpu)?)?;")
    kernel.ok("let v = Var::from_tensor(&Tensor::new(&[7f32, 11.0], &Device::Cpu)?)?;")
    cell = kernel.ok(
        "let gradients = (w.as_tensor() * v.as_tensor())?.sum_all()?.backward()?;\n"
        'println!("{:?}", gradients.get(&w).unwrap().to_vec1::<f32>()?);\n'
        'println!("{:?}", gradients.get(&v).unwrap().to_vec1::<f32>()?);'
    )
    assert cell.stdout.splitlines() == ["[7.0, 11.0]", "[2.0, 3.0]"]


def test_the_prelude_is_there_without_a_dep_line(kernel):
    assert kernel.ok('println!("{}", Accelerator::new()?.device());').stdout.strip()


def test_a_model_built_in_one_cell_trains_in_another(kernel):
    kernel.ok(FIRST_CELL)
    kernel.ok("use candle_core::{DType, Device, Tensor};\nuse candle_nn::{Module, Optimizer};")
    kernel.ok(
        "let variables = candle_nn::VarMap::new();\n"
        "let builder = candle_nn::VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);\n"
        "let layer = candle_nn::linear(1, 1, builder)?;"
    )
    kernel.ok(
        "let inputs = Tensor::new(&[[0f32], [1.0], [2.0], [3.0]], &Device::Cpu)?;\n"
        "let targets = Tensor::new(&[[1f32], [3.0], [5.0], [7.0]], &Device::Cpu)?;"
    )
    kernel.ok(
        "let mut optimizer = candle_nn::SGD::new(variables.all_vars(), 0.05)?;\n"
        "for _ in 0..1000 {\n"
        "    let loss = (layer.forward(&inputs)? - &targets)?.sqr()?.mean_all()?;\n"
        "    optimizer.backward_step(&loss)?;\n"
        "}"
    )
    cell = kernel.ok(
        'println!("{:.2}", layer.weight().flatten_all()?.to_vec1::<f32>()?[0]);\n'
        'println!("{:.2}", layer.bias().unwrap().to_vec1::<f32>()?[0]);'
    )
    # The data lie on y = 2 x + 1.
    assert cell.stdout.splitlines() == ["2.00", "1.00"]
