"""`GRADIRON_COMPILE_CHECK=1` runs the function beside each replay, and finds a replay that differs."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import gradiron as torch
import gradiron.nn.functional as F
from gradiron._compile.check import CompileCheckError

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)


def step(x):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    return {"loss": loss, "first": [x[0]]}


compiled = torch.compile(step)
for _ in range(6):
    found = compiled(torch.ones(3, 4))
print(float(found["loss"].detach()))
if compiled.__dict__.get("_compiled"):
    class Wrong:
        def __init__(self, program):
            self.program, self.numbers = program, program.numbers

        def replay(self, *args):
            made = self.program.replay(*args)
            made[0].detach().add_(1)
            return made

    for group in compiled._compiled.captures.values():
        for captured in group:
            captured.program = Wrong(captured.program)
    try:
        compiled(torch.ones(3, 4))
    except CompileCheckError as error:
        print("found:", str(error)[:20])
"""


@pytest.mark.parametrize("check", ["0", "1"])
def test_both_are_compared(check, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    environment = {**os.environ, "GRADIRON_COMPILE_CHECK": check}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    loss, *found = done.stdout.split("\n")
    losses.setdefault("loss", loss)
    assert loss == losses["loss"]
    assert ("found: step: result['loss']" in "".join(found)) == (check == "1"), done.stdout + done.stderr


losses = {}


MORE = """
import dataclasses
import gradiron as torch
from gradiron import nn

generator = torch.Generator().manual_seed(3)
outline = nn.Linear(3, 2).to("meta")
weights = {"weight": torch.randn(2, 3), "bias": torch.zeros(2)}


@dataclasses.dataclass
class Output:
    mean: torch.Tensor
    noise: torch.Tensor


@torch.compile
def f(x):
    y = torch.func.functional_call(outline, weights, (x,))
    return Output(y.mean(), torch.rand(2, generator=generator))


seen = [f(torch.ones(1, 3)).noise for _ in range(5)]
generator.manual_seed(3)
assert all(torch.equal(each, torch.rand(2, generator=generator)) for each in seen)
assert torch._dynamo.explain(f).graph_count == 1
"""


def test_generators_objects_and_tensors_without_memory(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(MORE)
    environment = {**os.environ, "GRADIRON_COMPILE_CHECK": "1"}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
