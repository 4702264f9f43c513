"""Networks on a GPU: anydml by a session and by its graph, beside PyTorch eager and its compiler; results are checked.

    python benchmarks/gpu_networks.py [--networks resnet50,transformer] [--types FLOAT16,TF32,FLOAT32] [--batches 1,64]
        [--no-compile] [--times]

SqueezeNet 1.1, MobileNetV2 and ResNet-50 are torchvision's, with random weights, and a transformer has 12 layers of 768
and 12 heads; all are exported to ONNX by PyTorch. TF32 is FLOAT32 with ALLOW_HALF_PRECISION_COMPUTATION, and what
torch.backends allows of it. A time is the shortest mean of five rounds, in milliseconds, of a run and what the host
does for it; errors are relative to the same network in FLOAT64 at batch 1, and in FLOAT32 beyond.
"""

from __future__ import annotations

import argparse
import copy
import io
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import anydml
import anydml.onnx

ROUNDS = 5
WIDTH, HEADS, LAYERS, LENGTH = 768, 12, 12, 128
VISION = {"squeezenet": "squeezenet1_1", "mobilenet": "mobilenet_v2", "resnet50": "resnet50"}


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.heads, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        parts = self.heads(self.first(x)).chunk(3, -1)
        q, k, v = (part.reshape(*x.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        x = x + self.joined(y)
        return x + self.narrow(functional.gelu(self.wide(self.second(x))))


def network(name: str) -> Any:
    torch.manual_seed(0)
    if name == "transformer":
        return nn.Sequential(*[Layer() for _ in range(LAYERS)]).eval().cuda()
    import torchvision

    made = getattr(torchvision.models, VISION[name])(weights=None)
    for each in made.modules():
        if isinstance(each, nn.BatchNorm2d):
            each.running_mean.normal_(0, 0.1)
            each.running_var.uniform_(0.5, 1.5)
    return made.eval().cuda()


def exported(module: Any, x: Any) -> bytes:
    file = io.BytesIO()
    torch.onnx.export(module, (x,), file, input_names=["x"], output_names=["y"], opset_version=17, dynamo=False)
    return file.getvalue()


def milliseconds(run: Callable[[], Any], repeats: int) -> float:
    best = float("inf")
    for i in range(1 + ROUNDS):
        begin = time.perf_counter()
        for _ in range(repeats):
            run()
        torch.cuda.synchronize()
        if i:
            best = min(best, 1e3 * (time.perf_counter() - begin) / repeats)
    return best


def error(found: Any, wanted: Any) -> float:
    return float((found.double() - wanted).norm() / wanted.norm())


def allow_tf32(is_allowed: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = is_allowed


def show_times(graph: Any, x: Any, out: Any) -> None:
    """The time of each operator, summed over all kernels."""
    totals: dict[str, list[float]] = {}
    inputs = [x, *[None] * (len(graph.inputs) - 1)]
    for seconds, step in zip(graph.times(inputs, [out], runs=3), graph.steps, strict=True):
        totals.setdefault(step.vertex.spec.name, []).append(1e3 * seconds)
    for name, each in sorted(totals.items(), key=lambda item: -sum(item[1])):
        print(f"    {name:36} {len(each):4} {sum(each):8.3f} ms")


def measure(name: str, kind: str, batch: int, is_compiled: bool, times: bool) -> str:
    module = network(name)
    x = torch.randn((batch, LENGTH, WIDTH) if name == "transformer" else (batch, 3, 224, 224), device="cuda")
    allow_tf32(False)
    with torch.inference_mode():
        wanted = copy.deepcopy(module).double()(x.double()) if batch == 1 else module(x).double()
    if kind == "FLOAT16":
        module, x = module.half(), x.half()
    model, repeats = exported(module, x), 20 if batch == 1 else 5
    allow_tf32(kind == "TF32")
    allowed = anydml.ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION
    flags = allowed if kind == "TF32" else anydml.ExecutionFlags.NONE
    session = anydml.onnx.InferenceSession(model, device="cuda", flags=flags)
    with torch.inference_mode():
        found = session.run(None, {"x": x})[0]
        of_session = milliseconds(lambda: session.run(None, {"x": x}), repeats)
        graph, out = session.graph, torch.empty_like(found)
        given = [x, *[None] * (len(graph.inputs) - 1)]
        of_graph = milliseconds(lambda: graph.dispatch(given, [out]), repeats)
        eager = milliseconds(lambda: module(x), repeats)
        compiled = float("nan")
        if is_compiled:
            torch._dynamo.reset()
            function = torch.compile(module, dynamic=False)
            compiled = milliseconds(lambda: function(x), repeats)
        own, other = error(out, wanted), error(module(x), wanted)
    if times:
        show_times(graph, x, out)
    line = f"{name:12} {kind:8} {batch:4} {of_graph:9.3f} {of_session:9.3f} {eager:9.3f} {compiled:9.3f}"
    return f"{line} {len(graph.steps):8} {own:8.1e} {other:8.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join([*VISION, "transformer"]))
    parser.add_argument("--types", default="FLOAT16,TF32,FLOAT32")
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--times", action="store_true", help="the time of each operator of the graph, on the device")
    arguments = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print("network      type    batch     graph   session     eager   compile  kernels    error   eager's")
    for name in arguments.networks.split(","):
        for kind in arguments.types.split(","):
            for batch in map(int, arguments.batches.split(",")):
                print(measure(name, kind, batch, not arguments.no_compile, arguments.times), flush=True)


if __name__ == "__main__":
    main()
